/** Contains the Spanish strings for the "Get started" checklist. */
import type { AreaTranslation } from '../catalogue.ts'
import type { firstRun as english } from '../en/first-run.ts'

export const firstRun: AreaTranslation<typeof english> = {
  title: 'Primeros pasos',
  about: 'Cuatro pasos desde una instalación nueva hasta un chat en su sitio web.',
  allSet: 'Todo está listo',
  progress: '{done} de {steps} pasos completados',
  hide: 'Ocultar lista',
  completeSteps: 'Pasos completados',
  complete: '(completado)',
  connect: 'Conectar un modelo',
  connectModel: 'Conectar modelo',
  create: 'Crear un agente',
  createAbout: 'Empiece con una plantilla: un nombre, instrucciones y, si lo desea, herramientas.',
  createAgent: 'Crear agente',
  try: 'Probarlo',
  tryAbout: 'Envíe un mensaje a su agente y vea la respuesta, las llamadas a herramientas y los tokens.',
  tryAgent: 'Probar agente',
  tryShort: 'Probar',
  tryTheAgent: 'Probar el agente',
  embed: 'Insertarlo',
  embedAbout: 'Copie el código de inserción de su agente en una página de su sitio web.',
  showEmbedCode: 'Mostrar código de inserción',
  embedShort: 'Insertar',
  embedTheAgent: 'Insertar el agente',
  askAdministrator:
    'Solo responde el modelo simulado integrado, que únicamente repite los mensajes. Pida a su administrador que conecte un modelo.',
  connectHelp:
    'Solo responde el modelo simulado integrado, que únicamente repite los mensajes. Añada OpenAI, Anthropic, Ollama o cualquier servidor con la API de OpenAI.',
  mockModel: 'Modelo simulado',
  mockNotice: 'Las respuestas provienen del modelo simulado integrado, que solo repite los mensajes. {link}',
  askShort: 'Pida a su administrador que conecte un modelo.',
}
