/** The frame's words in Portuguese. */
import type { Strings } from './strings.ts'

export const pt: Strings = {
  newMessages: { one: '{count} mensagem nova', other: '{count} mensagens novas' },

  defaultTitle: 'Chat',
  placeholder: 'Escreva uma mensagem…',
  send: 'Enviar',
  stop: 'Parar',
  messageLabel: 'Sua mensagem',
  conversation: 'Conversa',
  youSaid: 'Você',
  assistantSaid: 'Resposta do assistente',
  thinking: 'Escrevendo uma resposta…',
  answerReady: 'A resposta está completa.',
  stopped: 'Você parou esta resposta.',
  scrollDown: 'Mensagens novas',
  startersLabel: 'Sugestões',

  openChat: 'Abrir o chat',
  closeChat: 'Fechar o chat',
  menu: 'Mais ações',
  newConversation: 'Nova conversa',
  shareConversation: 'Compartilhar a conversa',
  newConversationQuestion: 'Começar uma nova conversa?',
  newConversationLoss: 'As mensagens desta serão apagadas deste dispositivo.',
  startNew: 'Começar de novo',
  cancel: 'Cancelar',

  copy: 'Copiar',
  copied: 'Copiado',
  copyCode: 'Copiar o código',
  copyMessage: 'Copiar a resposta',
  insert: 'Inserir na página',
  share: 'Compartilhar',
  shared: 'Compartilhado',
  retry: 'Tentar de novo',
  regenerate: 'Responder de novo',
  picture: 'Imagem',
  code: 'Código',
  table: 'Tabela',

  tooLongInput: 'A mensagem é longa demais: {count} de no máximo {limit} caracteres.',
  charactersUsed: '{count} de {limit} caracteres',

  tool: {
    running: 'Usando {name}…',
    done: '{name} usado',
    failed: '{name} falhou',
    denied: '{name} não foi permitido',
    asking: '{name} precisa da sua permissão',
    arguments: 'Dados enviados',
    result: 'Resultado',
    question: 'O assistente quer usar “{name}” nesta página exatamente com estes dados:',
    approve: 'Permitir',
    deny: 'Não permitir',
  },

  failures: {
    missing_api_key: 'Este chat ainda não está configurado: a página não informa uma chave de agente.',
    invalid_api_key: 'Este chat não pode ser usado: a chave dele foi recusada.',
    agent_mismatch: 'Este chat está mal configurado: a chave dele pertence a outro agente.',
    endpoint_not_allowed: 'Este chat não pode falar com o servidor que a página indica.',
    provider_key_not_allowed:
      'Este servidor não permite uma chave de provedor em uma página. O chat fica desligado para que a chave não seja usada.',
    context_too_large:
      'A página acrescenta mais informações do que é possível enviar. Sua mensagem não foi enviada.',
    rate_limited: 'Há mensagens demais neste momento. Aguarde um instante.',
    rate_limited_wait: 'Há mensagens demais neste momento. Tente de novo em {wait}.',
    quota_spent: 'A cota deste chat acabou por enquanto. Tente de novo mais tarde.',
    offline: 'Você está sem conexão. Assim que ela voltar, você pode continuar.',
    unreachable: 'Não é possível alcançar o servidor. Verifique sua conexão.',
    too_long:
      'Esta conversa é longa demais para o assistente. Comece uma nova ou envie uma mensagem mais curta.',
    refused: 'Não foi possível processar esta mensagem.',
    busy: 'O assistente não está disponível neste momento. Tente de novo em instantes.',
    interrupted: 'A conexão caiu no meio da resposta.',
    reloaded: 'A resposta foi interrompida quando a página foi recarregada.',
    empty: 'Nenhuma resposta chegou.',
    server: 'Algo deu errado no servidor.',
  },
  offlineNotice: 'Você está sem conexão.',
}
