/** Contains the Portuguese names of what the console loads and lists. */
import type { AreaTranslation } from '../catalogue.ts'
import type { things as english } from '../en/things.ts'

export const things: AreaTranslation<typeof english> = {
  agent: 'agente',
  agents: 'agentes',
  agentKey: 'chave do agente',
  agentKeys: 'chaves de agente',
  artifact: 'artefato',
  binned: 'agentes na lixeira',
  charts: 'gráficos',
  console: 'console',
  conversation: 'conversa',
  conversations: 'conversas',
  entries: 'entradas',
  example: 'exemplo',
  files: 'arquivos',
  keys: 'chaves',
  messages: 'mensagens',
  models: 'lista de modelos',
  page: 'página',
  pages: 'páginas',
  parentKeys: 'chaves principais',
  policy: 'política de modelos',
  steps: 'etapas',
  uploads: 'envios',
  usage: 'uso',
  users: 'usuários',
  versions: 'versões',
  providers: 'provedores',
  testResult: 'resultado do teste',
  calls: 'chamadas',
}
