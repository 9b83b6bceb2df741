/** Contains the Italian strings for the "Get started" checklist. */
import type { AreaTranslation } from '../catalogue.ts'
import type { firstRun as english } from '../en/first-run.ts'

export const firstRun: AreaTranslation<typeof english> = {
  title: 'Primi passi',
  about: 'Quattro passaggi da una nuova installazione a una chat sul suo sito web.',
  allSet: 'Tutto pronto',
  progress: '{done} passaggi su {steps} completati',
  hide: 'Nascondi elenco',
  completeSteps: 'Passaggi completati',
  complete: '(completato)',
  connect: 'Collega un modello',
  connectModel: 'Collega modello',
  create: 'Crea un agente',
  createAbout: 'Inizi da un modello di definizione: un nome, istruzioni e, se desidera, strumenti.',
  createAgent: 'Crea agente',
  try: 'Provalo',
  tryAbout: 'Invii un messaggio all’agente e veda la risposta, le chiamate agli strumenti e i token.',
  tryAgent: 'Prova agente',
  tryShort: 'Prova',
  tryTheAgent: 'Prova l’agente',
  embed: 'Incorporalo',
  embedAbout: 'Copi il codice di incorporamento dell’agente in una pagina del suo sito web.',
  showEmbedCode: 'Mostra codice di incorporamento',
  embedShort: 'Incorpora',
  embedTheAgent: 'Incorpora l’agente',
  askAdministrator:
    'Risponde solo il modello fittizio integrato, che si limita a ripetere i messaggi. Chieda all’amministratore di collegare un modello.',
  connectHelp:
    'Risponde solo il modello fittizio integrato, che si limita a ripetere i messaggi. Aggiunga OpenAI, Anthropic, Ollama o qualsiasi server con l’API di OpenAI.',
  mockModel: 'Modello fittizio',
  mockNotice:
    'Le risposte provengono dal modello fittizio integrato, che si limita a ripetere i messaggi. {link}',
  askShort: 'Chieda all’amministratore di collegare un modello.',
}
