/** Metrics by model. Only models that a provider lists have their own label value, so that the number of values is bounded. */
import { Counter, Histogram, type Registry } from 'prom-client'

export const OTHER = 'other'

export interface EndedCall {
  readonly operation: 'chat' | 'embeddings'
  /** `left`: the client disconnected, which is not an error. */
  readonly outcome: 'ok' | 'left' | 'failed'
  readonly durationMs: number
  /** Undefined where nothing was streamed. */
  readonly firstByteMs: number | undefined
  readonly inputTokens: number
  readonly outputTokens: number
}

export type IsListed = (provider: string, model: string) => boolean

const labelNames = ['provider', 'model']
/** Seconds, for complete answers and for their first token. */
const buckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]

export interface ModelMeter {
  readonly attempts: PendingCount
  readonly fallbacks: PendingCount
  ended(call: EndedCall): void
}

/** Adds up in memory what a counter gets when it is read: prom-client looks up the labels of each increment, which a chat would feel. */
class PendingCount {
  private readonly counter: Counter.Internal
  private pending = 0

  constructor(counter: Counter.Internal, pending: PendingCount[]) {
    this.counter = counter
    // A counter must exist at 0 for `rate()` to see its first increment.
    counter.inc(0)
    pending.push(this)
  }

  inc(by = 1): void {
    this.pending += by
  }

  flush(): void {
    if (this.pending === 0) return
    this.counter.inc(this.pending)
    this.pending = 0
  }
}

export class ModelMetrics {
  private readonly isListed: IsListed
  private readonly instruments: ReturnType<typeof createInstruments>
  private readonly known = new Map<string, Map<string, ModelMeter>>()

  constructor(registry: Registry, isListed: IsListed) {
    this.isListed = isListed
    this.instruments = createInstruments(registry)
  }

  /** The metrics of a provider's model; all models that the provider does not list share one. */
  of(provider: string, model: string): ModelMeter {
    return this.known.get(provider)?.get(model) ?? this.find(provider, this.nameOf(provider, model))
  }

  nameOf(provider: string, model: string): string {
    return this.isListed(provider, model) ? model : OTHER
  }

  private find(provider: string, name: string): ModelMeter {
    const ofProvider = this.known.get(provider) ?? new Map<string, ModelMeter>()
    this.known.set(provider, ofProvider)
    const meter = ofProvider.get(name) ?? this.create(provider, name)
    ofProvider.set(name, meter)
    return meter
  }

  private create(provider: string, model: string): ModelMeter {
    const { attempts, fallbacks, tokens, firstToken, duration, pending } = this.instruments
    const input = new PendingCount(tokens.labels(provider, model, 'input'), pending.tokens)
    const output = new PendingCount(tokens.labels(provider, model, 'output'), pending.tokens)
    const meter = {
      attempts: new PendingCount(attempts.labels(provider, model), pending.attempts),
      fallbacks: new PendingCount(fallbacks.labels(provider, model), pending.fallbacks),
      ended({ operation, outcome, durationMs, firstByteMs, inputTokens, outputTokens }: EndedCall) {
        duration[operation].observe({ provider, model, outcome }, durationMs / 1000)
        if (firstByteMs !== undefined) firstToken.observe({ provider, model }, firstByteMs / 1000)
        input.inc(inputTokens)
        output.inc(outputTokens)
      },
    }
    return meter
  }
}

function createInstruments(registry: Registry) {
  const registers = [registry]
  const pending = { tokens: [], attempts: [], fallbacks: [] } as Record<
    'tokens' | 'attempts' | 'fallbacks',
    PendingCount[]
  >
  const flushing = (name: keyof typeof pending) => () => {
    for (const count of pending[name]) count.flush()
  }
  return {
    pending,
    duration: {
      chat: new Histogram({
        name: 'parley_chat_duration_seconds',
        help: 'Time from a chat being admitted to its end, all rounds and attempts included.',
        labelNames: [...labelNames, 'outcome'],
        buckets,
        registers,
      }),
      embeddings: new Histogram({
        name: 'parley_embeddings_duration_seconds',
        help: 'Time from embeddings being admitted to their end.',
        labelNames: [...labelNames, 'outcome'],
        buckets,
        registers,
      }),
    },
    firstToken: new Histogram({
      name: 'parley_chat_first_token_seconds',
      help: 'Time from a streamed chat being admitted to the first bytes of its answer.',
      labelNames,
      buckets,
      registers,
    }),
    tokens: new Counter({
      name: 'parley_tokens_total',
      help: 'Tokens that models read (input) and wrote (output), estimated where a backend does not say.',
      labelNames: [...labelNames, 'direction'],
      registers,
      collect: flushing('tokens'),
    }),
    attempts: new Counter({
      name: 'parley_backend_attempts_total',
      help: 'Calls of backends, retries and fallbacks included.',
      labelNames,
      registers,
      collect: flushing('attempts'),
    }),
    fallbacks: new Counter({
      name: 'parley_backend_fallbacks_total',
      help: 'Calls that went on to another model because this one failed or rested.',
      labelNames,
      registers,
      collect: flushing('fallbacks'),
    }),
  }
}
