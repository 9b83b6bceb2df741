/** Contains the French names of what the console loads and lists. */
import type { AreaTranslation } from '../catalogue.ts'
import type { things as english } from '../en/things.ts'

export const things: AreaTranslation<typeof english> = {
  agent: 'agent',
  agents: 'agents',
  agentKey: 'clé de l’agent',
  agentKeys: 'clés d’agent',
  artifact: 'artefact',
  binned: 'agents dans la corbeille',
  charts: 'graphiques',
  console: 'console',
  conversation: 'conversation',
  conversations: 'conversations',
  entries: 'entrées',
  example: 'exemple',
  files: 'fichiers',
  keys: 'clés',
  messages: 'messages',
  models: 'liste des modèles',
  page: 'page',
  pages: 'pages',
  parentKeys: 'clés principales',
  policy: 'politique de modèles',
  steps: 'étapes',
  uploads: 'envois',
  usage: 'utilisation',
  users: 'utilisateurs',
  versions: 'versions',
  providers: 'fournisseurs',
  testResult: 'résultat du test',
  calls: 'appels',
}
