/** Contains the Italian names of what the console loads and lists. */
import type { AreaTranslation } from '../catalogue.ts'
import type { things as english } from '../en/things.ts'

export const things: AreaTranslation<typeof english> = {
  agent: 'agente',
  agents: 'agenti',
  agentKey: 'chiave dell’agente',
  agentKeys: 'chiavi degli agenti',
  artifact: 'artefatto',
  binned: 'agenti nel cestino',
  charts: 'grafici',
  console: 'console',
  conversation: 'conversazione',
  conversations: 'conversazioni',
  entries: 'voci',
  example: 'esempio',
  files: 'file',
  keys: 'chiavi',
  messages: 'messaggi',
  models: 'elenco dei modelli',
  page: 'pagina',
  pages: 'pagine',
  parentKeys: 'chiavi principali',
  policy: 'criteri dei modelli',
  steps: 'passaggi',
  uploads: 'caricamenti',
  usage: 'utilizzo',
  users: 'utenti',
  versions: 'versioni',
  providers: 'provider',
  testResult: 'risultato del test',
  calls: 'chiamate',
}
