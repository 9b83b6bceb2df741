/** Contains the Italian strings for an agent's Models page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { policy as english } from '../en/policy.ts'

export const policy: AreaTranslation<typeof english> = {
  title: 'Criteri dei modelli',
  defaultModel: 'Modello predefinito',
  defaultModelHelp:
    'Usato se una richiesta non indica un modello. Se vuoto, si usa il modello della definizione, poi quello predefinito del server.',
  defaultModelNone: 'Nessuno (usa il modello della definizione)',
  clearDefault: 'Rimuovi modello predefinito',
  allowedModels: 'Modelli consentiti',
  allowedHelp: 'Lascia vuoto per consentire tutti i modelli.',
  answerLimit: 'Limite di risposta',
  dailyBudget: 'Budget giornaliero',
  monthlyBudget: 'Budget mensile',
  inTokens: 'In token',
  used: '{number} usati',
  moveUp: 'Sposta su {name}',
  moveDown: 'Sposta giù {name}',
  remove: 'Rimuovi {name}',
  fallbackModels: 'Modelli di riserva',
  fallbackHelp: 'Provati in quest’ordine se un modello fallisce prima di iniziare a rispondere.',
  allAdded: 'Tutti i modelli aggiunti',
  addModel: 'Aggiungi modello',
  degrade: 'Modelli più economici',
  degradeHelp:
    'Questi modelli rispondono alle nuove richieste quando è stata usata la percentuale indicata di un budget applicabile.',
  degradeAt: 'Percentuale di un budget per {name}',
  degradeFull: 'Al massimo 3 modelli',
  saved: 'Criteri dei modelli salvati',
  allOf: 'Tutti i modelli di {provider}',
  unavailable: '{name} (non disponibile)',
  effective: 'In vigore ora',
  noneAvailable: 'Nessun modello disponibile. Consenti un modello elencato da un provider.',
  default: 'predefinito',
  fallback: 'riserva',
  becausePolicy: 'Usato se una richiesta non indica un modello: i criteri lo impostano come predefinito.',
  becauseYaml:
    'Usato se una richiesta non indica un modello: la definizione lo indica e i criteri lo consentono.',
  becauseNone:
    'Usato se una richiesta non indica un modello: né i criteri né la definizione ne indicano uno che l’agente possa usare, quindi è quello predefinito del server o il primo consentito.',
  fallbackTried: 'Provato se i modelli sopra falliscono prima di iniziare a rispondere.',
  otherAny: 'Le richieste possono usare anche qualsiasi altro modello:',
  otherAllowed: 'Le richieste possono usare anche questi modelli consentiti:',
}
