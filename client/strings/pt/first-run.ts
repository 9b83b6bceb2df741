/** Contains the Portuguese strings for the "Get started" checklist. */
import type { AreaTranslation } from '../catalogue.ts'
import type { firstRun as english } from '../en/first-run.ts'

export const firstRun: AreaTranslation<typeof english> = {
  title: 'Primeiros passos',
  about: 'Quatro etapas de uma nova instalação até um chat no seu site.',
  allSet: 'Tudo pronto',
  progress: '{done} de {steps} etapas concluídas',
  hide: 'Ocultar lista',
  completeSteps: 'Etapas concluídas',
  complete: '(concluída)',
  connect: 'Conectar um modelo',
  connectModel: 'Conectar modelo',
  create: 'Criar um agente',
  createAbout: 'Comece com um modelo de definição: um nome, instruções e, se quiser, ferramentas.',
  createAgent: 'Criar agente',
  try: 'Testar',
  tryAbout: 'Envie uma mensagem ao seu agente e veja a resposta, as chamadas de ferramentas e os tokens.',
  tryAgent: 'Testar agente',
  tryShort: 'Testar',
  tryTheAgent: 'Testar o agente',
  embed: 'Incorporar',
  embedAbout: 'Copie o código de incorporação do seu agente para uma página do seu site.',
  showEmbedCode: 'Mostrar código de incorporação',
  embedShort: 'Incorporar',
  embedTheAgent: 'Incorporar o agente',
  askAdministrator:
    'Somente o modelo simulado integrado responde, e ele apenas repete as mensagens. Peça ao administrador que conecte um modelo.',
  connectHelp:
    'Somente o modelo simulado integrado responde, e ele apenas repete as mensagens. Adicione OpenAI, Anthropic, Ollama ou qualquer servidor com a API da OpenAI.',
  mockModel: 'Modelo simulado',
  mockNotice: 'As respostas vêm do modelo simulado integrado, que apenas repete as mensagens. {link}',
  askShort: 'Peça ao administrador que conecte um modelo.',
}
