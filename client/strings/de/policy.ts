/** Contains the German strings for an agent's Models page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { policy as english } from '../en/policy.ts'

export const policy: AreaTranslation<typeof english> = {
  title: 'Modellregeln',
  defaultModel: 'Standardmodell',
  defaultModelHelp:
    'Gilt, wenn eine Anfrage kein Modell angibt. Ist das Feld leer, gilt das Modell der Definition, danach der Standard des Servers.',
  defaultModelNone: 'Keines (Modell der Definition verwenden)',
  clearDefault: 'Standardmodell entfernen',
  allowedModels: 'Erlaubte Modelle',
  allowedHelp: 'Leer lassen, um alle Modelle zu erlauben.',
  answerLimit: 'Antwortlimit',
  dailyBudget: 'Tagesbudget',
  monthlyBudget: 'Monatsbudget',
  inTokens: 'In Tokens',
  used: '{number} verbraucht',
  moveUp: '{name} nach oben verschieben',
  moveDown: '{name} nach unten verschieben',
  remove: '{name} entfernen',
  fallbackModels: 'Ersatzmodelle',
  fallbackHelp: 'In dieser Reihenfolge verwendet, wenn ein Modell vor Beginn seiner Antwort ausfällt.',
  allAdded: 'Alle Modelle hinzugefügt',
  addModel: 'Modell hinzufügen',
  degrade: 'Günstigere Modelle',
  degradeHelp:
    'Diese Modelle beantworten neue Anfragen, sobald ein geltendes Budget bis zum angegebenen Prozentsatz verbraucht ist.',
  degradeAt: 'Prozentsatz eines Budgets für {name}',
  degradeFull: 'Höchstens 3 Modelle',
  saved: 'Modellregeln gespeichert',
  allOf: 'Alle Modelle von {provider}',
  unavailable: '{name} (nicht verfügbar)',
  effective: 'Derzeit wirksam',
  noneAvailable: 'Kein Modell ist verfügbar. Erlauben Sie ein Modell, das ein Anbieter auflistet.',
  default: 'Standard',
  fallback: 'Ersatz',
  becausePolicy: 'Gilt, wenn eine Anfrage kein Modell angibt: Die Modellregeln legen es als Standard fest.',
  becauseYaml:
    'Gilt, wenn eine Anfrage kein Modell angibt: Die Definition nennt es, und die Modellregeln erlauben es.',
  becauseNone:
    'Gilt, wenn eine Anfrage kein Modell angibt: Weder Modellregeln noch Definition nennen eines, das der Agent verwenden kann, daher ist es der Standard des Servers oder das erste erlaubte Modell.',
  fallbackTried: 'Wird verwendet, wenn die Modelle darüber vor Beginn ihrer Antwort ausfallen.',
  otherAny: 'Anfragen können auch jedes andere Modell verwenden:',
  otherAllowed: 'Anfragen können auch diese erlaubten Modelle verwenden:',
}
