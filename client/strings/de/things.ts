/** Contains the German names of what the console loads and lists. */
import type { AreaTranslation } from '../catalogue.ts'
import type { things as english } from '../en/things.ts'

export const things: AreaTranslation<typeof english> = {
  agent: 'Agent',
  agents: 'Agenten',
  agentKey: 'Schlüssel des Agenten',
  agentKeys: 'Agentenschlüssel',
  artifact: 'Artefakt',
  binned: 'Agenten im Papierkorb',
  charts: 'Diagramme',
  console: 'Konsole',
  conversation: 'Unterhaltung',
  conversations: 'Unterhaltungen',
  entries: 'Einträge',
  example: 'Beispiel',
  files: 'Dateien',
  keys: 'Schlüssel',
  messages: 'Nachrichten',
  models: 'Modellliste',
  page: 'Seite',
  pages: 'Seiten',
  parentKeys: 'Hauptschlüssel',
  policy: 'Modellregeln',
  steps: 'Schritte',
  uploads: 'Uploads',
  usage: 'Nutzung',
  users: 'Benutzer',
  versions: 'Versionen',
  providers: 'Anbieter',
  testResult: 'Testergebnis',
  calls: 'Aufrufe',
}
