/** What is counted for each model; only models that a backend lists have numbers of their own. */
import { answerBounds, type Count, Counts, type Meter, type Spread, Spreads } from './counters.ts'

/** How a call ended: its caller may leave, and has not met an error then. */
export type CallOutcome = 'ok' | 'left' | 'failed'

/** What a call of a model came to. */
export interface EndedCall {
  readonly operation: 'chat' | 'embeddings'
  readonly outcome: CallOutcome
  readonly durationMs: number
  /** Undefined where nothing was streamed. */
  readonly firstByteMs: number | undefined
  readonly inputTokens: number
  readonly outputTokens: number
}

/** Whether a backend lists that model: what it does not list could be anything, and as many. */
export type IsListed = (provider: string, model: string) => boolean

const byModel = ['provider', 'model']

const families = {
  chat: () =>
    new Spreads({
      name: 'parley_chat_duration_seconds',
      help: 'Time from a chat being admitted to its end, all rounds and attempts included.',
      labels: [...byModel, 'outcome'],
      bounds: answerBounds,
    }),
  firstToken: () =>
    new Spreads({
      name: 'parley_chat_first_token_seconds',
      help: 'Time from a streamed chat being admitted to the first bytes of its answer.',
      labels: byModel,
      bounds: answerBounds,
    }),
  embeddings: () =>
    new Spreads({
      name: 'parley_embeddings_duration_seconds',
      help: 'Time from embeddings being admitted to their end.',
      labels: [...byModel, 'outcome'],
      bounds: answerBounds,
    }),
  tokens: () =>
    new Counts({
      name: 'parley_tokens_total',
      help: 'Tokens that models read (input) and wrote (output), estimated where a backend does not say.',
      labels: [...byModel, 'direction'],
    }),
  attempts: () =>
    new Counts({
      name: 'parley_backend_attempts_total',
      help: 'Calls of backends, retries and fallbacks included.',
      labels: byModel,
    }),
  fallbacks: () =>
    new Counts({
      name: 'parley_backend_fallbacks_total',
      help: 'Calls that went on to another model because this one failed or rested.',
      labels: byModel,
    }),
}

type Families = { readonly [Name in keyof typeof families]: ReturnType<(typeof families)[Name]> }

/** The numbers of one model. */
export class ModelMeter {
  readonly attempts: Count
  readonly fallbacks: Count
  private readonly input: Count
  private readonly output: Count
  private readonly all: Families
  private readonly labels: readonly [provider: string, model: string]
  private firstToken: Spread | undefined
  private readonly durations = new Map<string, Spread>()

  constructor(all: Families, labels: readonly [provider: string, model: string]) {
    this.all = all
    this.labels = labels
    this.attempts = all.attempts.of(...labels)
    this.fallbacks = all.fallbacks.of(...labels)
    this.input = all.tokens.of(...labels, 'input')
    this.output = all.tokens.of(...labels, 'output')
  }

  ended({ operation, outcome, durationMs, firstByteMs, inputTokens, outputTokens }: EndedCall): void {
    this.durationOf(operation, outcome).observe(durationMs / 1000)
    if (firstByteMs !== undefined) {
      this.firstToken ??= this.all.firstToken.of(...this.labels)
      this.firstToken.observe(firstByteMs / 1000)
    }
    this.input.add(inputTokens)
    this.output.add(outputTokens)
  }

  private durationOf(operation: EndedCall['operation'], outcome: CallOutcome): Spread {
    const known = this.durations.get(operation + outcome)
    if (known !== undefined) return known
    const made = this.all[operation].of(...this.labels, outcome)
    this.durations.set(operation + outcome, made)
    return made
  }
}

/** The numbers of all models. */
export class ModelMeters {
  readonly meters: readonly Meter[]
  private readonly families: Families
  private readonly isListed: IsListed
  private readonly known = new Map<string, Map<string, ModelMeter>>()

  constructor(isListed: IsListed) {
    this.isListed = isListed
    this.families = {
      chat: families.chat(),
      firstToken: families.firstToken(),
      embeddings: families.embeddings(),
      tokens: families.tokens(),
      attempts: families.attempts(),
      fallbacks: families.fallbacks(),
    }
    this.meters = Object.values(this.families)
  }

  /** The numbers of a provider's own model id; of all unlisted ones together where no list names it. */
  of(provider: string, model: string): ModelMeter {
    return this.known.get(provider)?.get(model) ?? this.find(provider, model)
  }

  /** What the model is called in a label. */
  nameOf(provider: string, model: string): string {
    return this.isListed(provider, model) ? model : OTHER
  }

  private find(provider: string, model: string): ModelMeter {
    const name = this.nameOf(provider, model)
    const ofProvider = this.known.get(provider) ?? new Map<string, ModelMeter>()
    this.known.set(provider, ofProvider)
    const meter = ofProvider.get(name) ?? new ModelMeter(this.families, [provider, name])
    ofProvider.set(name, meter)
    return meter
  }
}

/** Stands for whatever has no numbers of its own. */
export const OTHER = 'other'
