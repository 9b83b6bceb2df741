/** Builds the trace of a turn from the steps that the server reports, with times since the turn began. */
import type { Outputs } from '../../api.ts'

type Runs = Outputs['chat']['stream'] extends AsyncIterable<(infer Chunk)[]> ? Chunk : never
export type Chunk = Runs
export type Step = NonNullable<Chunk['step']>

/** One line of the trace. Times are in milliseconds since the turn began. */
export type TraceItem =
  | { readonly kind: 'route'; readonly models: readonly string[]; readonly isDegraded: boolean }
  | {
      readonly kind: 'model'
      readonly model: string
      readonly startMs: number
      /** The time of the first output; undefined if the request has failed. */
      readonly firstMs?: number
      readonly endMs?: number
      readonly isFallback: boolean
      readonly failure?: string
      readonly promptTokens?: number
      readonly completionTokens?: number
    }
  | {
      readonly kind: 'tool'
      readonly id: string
      readonly place: 'server' | 'page'
      readonly name: string
      readonly argumentsText: string
      readonly result?: string
      readonly startMs: number
      readonly endMs?: number
    }

export interface TraceTurn {
  readonly id: string
  readonly question: string
  readonly status: 'running' | 'waiting' | 'done' | 'stopped' | 'failed'
  readonly items: readonly TraceItem[]
  /** The model that answers, as `provider/model`. */
  readonly model?: string
  readonly isFallback: boolean
  /** The number of requests until the first output. */
  readonly attempts: number
  readonly promptTokens: number
  readonly completionTokens: number
  /** In US dollars; undefined if the models have no price, or are free. */
  readonly cost?: number
  readonly firstTextMs?: number
  readonly totalMs: number
  readonly problem?: string
  readonly requestId?: string | undefined
  /** The requests of the chat and the steps of the server, for the raw view. */
  readonly raw: readonly { readonly request: unknown; readonly steps: readonly Step[] }[]
}

export function newTurn(id: string, question: string): TraceTurn {
  return {
    id,
    question,
    status: 'running',
    items: [],
    isFallback: false,
    attempts: 0,
    promptTokens: 0,
    completionTokens: 0,
    totalMs: 0,
    raw: [],
  }
}

export function addRequest(turn: TraceTurn, request: unknown): TraceTurn {
  return { ...turn, status: 'running', raw: [...turn.raw, { request, steps: [] }] }
}

/** Adds the chunks of a request that started `offsetMs` after the turn; they arrived at `nowMs`. */
export function addChunks(
  turn: TraceTurn,
  chunks: readonly Chunk[],
  { offsetMs, nowMs }: { readonly offsetMs: number; readonly nowMs: number },
): TraceTurn {
  const steps = chunks.flatMap(({ step }) => step ?? [])
  const hasText = chunks.some(({ choices }) => choices.some(({ delta }) => (delta.content ?? '') !== ''))
  const last = turn.raw.at(-1)
  const raw =
    steps.length === 0 || last === undefined
      ? turn.raw
      : [...turn.raw.slice(0, -1), { ...last, steps: [...last.steps, ...steps] }]
  const timed = {
    ...addCost(turn, chunks),
    raw,
    totalMs: nowMs,
    firstTextMs: turn.firstTextMs ?? (hasText ? nowMs : undefined),
  }
  return steps.reduce((now, step) => addStep(now, step, offsetMs), withoutUndefined(timed))
}

/** A turn with calls to page tools makes several requests, each of which reports its cost. */
function addCost(turn: TraceTurn, chunks: readonly Chunk[]): TraceTurn {
  const costs = chunks.flatMap(({ usage }) => readCost(usage) ?? [])
  if (costs.length === 0) return turn
  return { ...turn, cost: costs.reduce((sum, cost) => sum + cost, turn.cost ?? 0) }
}

function readCost(usage: unknown): number | undefined {
  const { cost } = (usage ?? {}) as { readonly cost?: unknown }
  return typeof cost === 'number' ? cost : undefined
}

function withoutUndefined({
  firstTextMs,
  ...turn
}: Omit<TraceTurn, 'firstTextMs'> & { firstTextMs?: number | undefined }): TraceTurn {
  return firstTextMs === undefined ? turn : { ...turn, firstTextMs }
}

function addStep(turn: TraceTurn, step: Step, offsetMs: number): TraceTurn {
  const atMs = offsetMs + step.at_ms
  const add = (item: TraceItem): TraceTurn => ({ ...turn, items: [...turn.items, item] })
  switch (step.type) {
    case 'route':
      return add({ kind: 'route', models: step.models.map(nameOf), isDegraded: step.is_degraded })
    case 'attempt': {
      const { failure, is_fallback: isFallback } = step
      const item = {
        kind: 'model',
        model: nameOf(step),
        startMs: offsetMs + step.started_ms,
        isFallback,
      } as const
      if (failure === null) return add({ ...item, firstMs: atMs })
      return add({ ...item, endMs: atMs, failure: `${failure.message} (${failure.reason})` })
    }
    case 'answering':
      return { ...turn, model: nameOf(step), attempts: step.attempts, isFallback: step.is_fallback }
    case 'model_output':
      return addOutput(turn, step, atMs)
    case 'tool_call': {
      const { call_id: id, name, arguments: argumentsText } = step
      return add({ kind: 'tool', id, place: 'server', name, argumentsText, startMs: atMs })
    }
    case 'tool_result':
      return endTool(turn, step.call_id, step.content, atMs)
  }
}

function addOutput(turn: TraceTurn, step: Extract<Step, { type: 'model_output' }>, endMs: number): TraceTurn {
  const place = turn.items.findLastIndex(({ kind }) => kind === 'model')
  const item = turn.items[place]
  if (item?.kind !== 'model') return turn
  const [promptTokens, completionTokens] = [step.prompt_tokens ?? 0, step.completion_tokens ?? 0]
  return {
    ...turn,
    items: turn.items.with(place, { ...item, endMs, promptTokens, completionTokens }),
    promptTokens: turn.promptTokens + promptTokens,
    completionTokens: turn.completionTokens + completionTokens,
  }
}

function nameOf({ provider, model }: { readonly provider: string; readonly model: string }): string {
  return `${provider}/${model}`
}

/** Adds a call to a page tool, whose result the tester enters. */
export function beginPageTool(
  turn: TraceTurn,
  call: {
    readonly id: string
    readonly name: string
    readonly argumentsText: string
    readonly startMs: number
  },
): TraceTurn {
  return { ...turn, status: 'waiting', items: [...turn.items, { kind: 'tool', place: 'page', ...call }] }
}

export function endTool(turn: TraceTurn, id: string, result: string, endMs: number): TraceTurn {
  const items = turn.items.map((item) =>
    item.kind === 'tool' && item.id === id && item.endMs === undefined ? { ...item, result, endMs } : item,
  )
  return { ...turn, items, totalMs: Math.max(turn.totalMs, endMs) }
}

/** Sets the turn's final status. A turn that waits for page tool results continues with the next request. */
export function endTurn(turn: TraceTurn, status: 'done' | 'stopped' | 'failed', nowMs: number): TraceTurn {
  return { ...turn, status, totalMs: nowMs }
}

export function isRunning({ status }: TraceTurn): boolean {
  return status === 'running' || status === 'waiting'
}
