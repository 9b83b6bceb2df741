/** The frame's words in Spanish. */
import type { Strings } from './strings.ts'

export const es: Strings = {
  newMessages: { one: '{count} mensaje nuevo', other: '{count} mensajes nuevos' },

  defaultTitle: 'Chat',
  placeholder: 'Escribe un mensaje…',
  send: 'Enviar',
  stop: 'Detener',
  messageLabel: 'Tu mensaje',
  conversation: 'Conversación',
  youSaid: 'Tú',
  assistantSaid: 'Respuesta del asistente',
  thinking: 'Escribiendo una respuesta…',
  answerReady: 'La respuesta está completa.',
  stopped: 'Has detenido esta respuesta.',
  scrollDown: 'Mensajes nuevos',
  startersLabel: 'Sugerencias',

  openChat: 'Abrir el chat',
  closeChat: 'Cerrar el chat',
  menu: 'Más acciones',
  newConversation: 'Nueva conversación',
  shareConversation: 'Compartir la conversación',
  newConversationQuestion: '¿Empezar una nueva conversación?',
  newConversationLoss: 'Los mensajes de esta se borrarán de este dispositivo.',
  startNew: 'Empezar de nuevo',
  cancel: 'Cancelar',

  copy: 'Copiar',
  copied: 'Copiado',
  copyCode: 'Copiar el código',
  copyMessage: 'Copiar la respuesta',
  insert: 'Insertar en la página',
  share: 'Compartir',
  shared: 'Compartido',
  retry: 'Reintentar',
  regenerate: 'Responder de nuevo',
  picture: 'Imagen',
  code: 'Código',
  table: 'Tabla',

  tooLongInput: 'El mensaje es demasiado largo: {count} de {limit} caracteres como máximo.',
  charactersUsed: '{count} de {limit} caracteres',

  tool: {
    running: 'Usando {name}…',
    done: '{name} usado',
    failed: '{name} ha fallado',
    denied: 'No se permitió {name}',
    asking: '{name} necesita tu permiso',
    arguments: 'Datos enviados',
    result: 'Resultado',
    question: 'El asistente quiere usar «{name}» en esta página exactamente con estos datos:',
    approve: 'Permitir',
    deny: 'No permitir',
  },

  failures: {
    missing_api_key: 'Este chat aún no está configurado: la página no indica una clave de agente.',
    invalid_api_key: 'Este chat no se puede usar: su clave ha sido rechazada.',
    agent_mismatch: 'Este chat está mal configurado: su clave pertenece a otro agente.',
    endpoint_not_allowed: 'Este chat no puede comunicarse con el servidor que indica la página.',
    provider_key_not_allowed:
      'Este servidor no permite una clave de proveedor en una página. El chat queda desactivado para que la clave no se use.',
    context_too_large:
      'La página añade más información de la que se puede enviar. Tu mensaje no se ha enviado.',
    rate_limited: 'Hay demasiados mensajes en este momento. Espera un momento.',
    rate_limited_wait: 'Hay demasiados mensajes en este momento. Inténtalo de nuevo en {wait}.',
    quota_spent: 'El cupo de este chat se ha agotado por ahora. Inténtalo más tarde.',
    offline: 'No tienes conexión. Podrás continuar en cuanto vuelva.',
    unreachable: 'No se puede acceder al servidor. Comprueba tu conexión.',
    too_long:
      'Esta conversación es demasiado larga para el asistente. Empieza una nueva o envía un mensaje más corto.',
    refused: 'No se ha podido procesar este mensaje.',
    busy: 'El asistente no está disponible en este momento. Inténtalo de nuevo en un momento.',
    interrupted: 'La conexión se cortó en mitad de la respuesta.',
    reloaded: 'La respuesta se cortó al recargar la página.',
    empty: 'No ha llegado ninguna respuesta.',
    server: 'Algo ha fallado en el servidor.',
  },
  offlineNotice: 'No tienes conexión.',
}
