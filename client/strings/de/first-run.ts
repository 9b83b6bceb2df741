/** Contains the German strings for the "Get started" checklist. */
import type { AreaTranslation } from '../catalogue.ts'
import type { firstRun as english } from '../en/first-run.ts'

export const firstRun: AreaTranslation<typeof english> = {
  title: 'Erste Schritte',
  about: 'Vier Schritte von einer neuen Installation zu einem Chat auf Ihrer Website.',
  allSet: 'Alles ist eingerichtet',
  progress: '{done} von {steps} Schritten abgeschlossen',
  hide: 'Checkliste ausblenden',
  completeSteps: 'Abgeschlossene Schritte',
  complete: '(abgeschlossen)',
  connect: 'Modell verbinden',
  connectModel: 'Modell verbinden',
  create: 'Agenten anlegen',
  createAbout: 'Beginnen Sie mit einer Vorlage: ein Name, Anweisungen und bei Bedarf Werkzeuge.',
  createAgent: 'Agenten erstellen',
  try: 'Ausprobieren',
  tryAbout: 'Senden Sie Ihrem Agenten eine Nachricht und sehen Sie Antwort, Werkzeugaufrufe und Token.',
  tryAgent: 'Agenten ausprobieren',
  tryShort: 'Testen',
  tryTheAgent: 'Den Agenten ausprobieren',
  embed: 'Einbetten',
  embedAbout: 'Kopieren Sie den Einbettungscode Ihres Agenten auf eine Seite Ihrer Website.',
  showEmbedCode: 'Einbettungscode anzeigen',
  embedShort: 'Einbetten',
  embedTheAgent: 'Den Agenten einbetten',
  askAdministrator:
    'Es antwortet nur das eingebaute Mock-Modell, das Nachrichten lediglich wiederholt. Bitten Sie Ihre Administration, ein Modell zu verbinden.',
  connectHelp:
    'Es antwortet nur das eingebaute Mock-Modell, das Nachrichten lediglich wiederholt. Fügen Sie OpenAI, Anthropic, Ollama oder einen beliebigen Server mit der OpenAI-API hinzu.',
  mockModel: 'Mock-Modell',
  mockNotice: 'Die Antworten stammen vom eingebauten Mock-Modell, das Nachrichten nur wiederholt. {link}',
  askShort: 'Bitten Sie Ihre Administration, ein Modell zu verbinden.',
}
