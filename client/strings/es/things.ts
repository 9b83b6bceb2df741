/** Contains the Spanish names of what the console loads and lists. */
import type { AreaTranslation } from '../catalogue.ts'
import type { things as english } from '../en/things.ts'

export const things: AreaTranslation<typeof english> = {
  agent: 'agente',
  agents: 'agentes',
  agentKey: 'clave del agente',
  agentKeys: 'claves de agente',
  artifact: 'artefacto',
  binned: 'agentes en la papelera',
  charts: 'gráficos',
  console: 'consola',
  conversation: 'conversación',
  conversations: 'conversaciones',
  entries: 'entradas',
  example: 'ejemplo',
  files: 'archivos',
  keys: 'claves',
  messages: 'mensajes',
  models: 'lista de modelos',
  page: 'página',
  pages: 'páginas',
  parentKeys: 'claves principales',
  policy: 'política de modelos',
  steps: 'pasos',
  uploads: 'subidas',
  usage: 'uso',
  users: 'usuarios',
  versions: 'versiones',
  providers: 'proveedores',
  testResult: 'resultado de la prueba',
  calls: 'llamadas',
}
