/** Converts the diagnostics of a turn to the steps of a timeline. */
import type { Tone } from '../../components/tone.ts'
import { renderMilliseconds } from '../../format.ts'
import type { PlainKey } from '../../strings/catalogue.ts'
import { t } from '../../strings/language.ts'
import type { Item, TurnDetails } from '../queries.ts'

interface ModelRoute {
  readonly provider?: string
  readonly model?: string
}

/** Described in docs/conversations.md. Most fields are absent while the turn runs and after a crash. */
export interface Diagnostics {
  readonly route?: {
    readonly requested?: string | null
    /** Null if no model was available. */
    readonly chosen?: ModelRoute | null
    readonly source?: string
    readonly skipped?: readonly (ModelRoute & { readonly why?: string })[]
  }
  readonly attempts?: readonly Attempt[]
  readonly policy?: readonly { readonly kind: string; readonly name: string }[]
  readonly history?: { readonly sent: number; readonly left_out: number } | null
  readonly tools?: readonly RanTool[]
  readonly budget?: { readonly reserved: number; readonly settled: number } | null
  readonly stopped?: string | null
  readonly tokens?: {
    readonly input_tokens_details?: { readonly cached_tokens?: number }
    readonly output_tokens_details?: { readonly reasoning_tokens?: number }
  } | null
  readonly resumes?: number
  readonly is_truncated?: boolean
}

interface Attempt extends ModelRoute {
  readonly round: number
  readonly outcome: string
  readonly cause?: string | null
  readonly http_status?: number | null
  readonly started_ms: number
  readonly ended_ms: number
}

interface RanTool {
  readonly name: string
  readonly origin: string
  readonly outcome: string
  /** Absent in turns of earlier versions. */
  readonly started_ms?: number
  readonly duration_ms: number
  readonly approval?: string | null
}

export interface Step {
  readonly tone: Tone
  readonly title: string
  readonly detail?: string | undefined
  readonly durationMs?: number
  /** When the step ran, as shares of the turn's duration from 0 to 1. */
  readonly span?: { readonly from: number; readonly to: number }
}

/** `items` are those of the conversation, which contain the calls to tools of the page. */
export function toSteps(turn: TurnDetails, items: readonly Item[] = []): Step[] {
  const found: Diagnostics = turn.diagnostics
  const { attempts = [], tools = [] } = found
  const ends = [
    ...attempts.map(({ ended_ms: end }) => end),
    ...tools.map(({ started_ms: start = 0, duration_ms: duration }) => start + duration),
  ]
  const totalMs = Math.max(turn.duration_ms ?? 0, ...ends, 1)
  // Earlier versions have not recorded when a tool began, which was after the first model call.
  const firstEnd = attempts[0]?.ended_ms ?? 0
  const timed = [
    ...attempts.map((attempt, index) => ({
      from: attempt.started_ms,
      step: toAttempt(attempt, attempts[index - 1], totalMs),
    })),
    ...tools.map((tool) => ({ from: tool.started_ms ?? firstEnd, step: toTool(tool, totalMs) })),
  ]
  return [
    ...toRoute(found),
    ...(found.policy ?? []).map(toPolicy),
    ...toHistory(found),
    ...(found.is_truncated
      ? [{ tone: 'warn' as const, title: t('conversations.diagnosticsTruncated') }]
      : []),
    ...timed.toSorted((one, other) => one.from - other.from).map(({ step }) => step),
    ...toPageCalls(turn.id, items),
    ...toEnd(turn, found),
  ]
}

const sources: Readonly<Record<string, PlainKey>> = {
  request: 'conversations.routeRequest',
  policy: 'conversations.routePolicy',
  definition: 'conversations.routeDefinition',
  default: 'conversations.routeDefault',
  budget: 'conversations.routeBudget',
}

const skipReasons: Readonly<Record<string, PlainKey>> = {
  not_allowed: 'conversations.skipNotAllowed',
  not_available: 'conversations.skipNotAvailable',
  breaker_open: 'conversations.skipBreaker',
  attachment_not_supported: 'conversations.skipAttachment',
  budget: 'conversations.skipBudget',
}

function toRoute({ route }: Diagnostics): Step[] {
  if (route === undefined) return []
  const { requested, chosen, source, skipped = [] } = route
  const isOther = requested != null && requested !== nameOf(chosen) && requested !== chosen?.model
  const reason = text(sources, source)
  return [
    ...skipped.map(
      ({ why, ...model }): Step => ({
        tone: 'warn',
        title: t('conversations.skipped', { model: nameOf(model) }),
        detail: text(skipReasons, why),
      }),
    ),
    // Without a chosen model, the policy contains the refused one.
    ...(chosen === null ? [] : [toChosen()]),
  ]

  function toChosen(): Step {
    return {
      tone: 'active',
      title: t('conversations.chose', { model: nameOf(chosen) }),
      detail: isOther ? `${reason} ${t('conversations.requested', { model: requested })}` : reason,
    }
  }
}

function toPolicy({ kind, name }: { readonly kind: string; readonly name: string }): Step {
  const titles: Readonly<Record<string, string>> = {
    tool_withheld: t('conversations.toolWithheld', { name }),
    page_tool_blocked: t('conversations.pageToolBlocked', { name }),
    tokens_capped: t('conversations.tokensCapped', { name }),
    model_refused: t('conversations.modelRefused', { name }),
  }
  return { tone: kind === 'model_refused' ? 'bad' : 'warn', title: titles[kind] ?? `${kind}: ${name}` }
}

function toHistory({ history }: Diagnostics): Step[] {
  if (history == null || history.sent + history.left_out === 0) return []
  const { sent, left_out: leftOut } = history
  return [
    {
      tone: 'quiet',
      title: t('conversations.historySent', { count: sent }),
      detail: leftOut === 0 ? undefined : t('conversations.historyLeftOut', { count: leftOut }),
    },
  ]
}

const causes: Readonly<Record<string, PlainKey>> = {
  timeout: 'conversations.causeTimeout',
  unreachable: 'conversations.causeUnreachable',
  protocol: 'conversations.causeProtocol',
  error_event: 'conversations.causeErrorEvent',
  status_3xx: 'conversations.causeRedirect',
  status_4xx: 'conversations.causeRejected',
  status_429: 'conversations.causeTooMany',
  status_5xx: 'conversations.causeServer',
}

function toAttempt(attempt: Attempt, before: Attempt | undefined, totalMs: number): Step {
  const { outcome, cause, http_status: status, started_ms: from, ended_ms: to } = attempt
  const model = nameOf(attempt)
  const time = { durationMs: to - from, span: { from: from / totalMs, to: to / totalMs } }
  const isFallback = before !== undefined && before.outcome !== 'ok' && nameOf(before) !== model
  if (outcome === 'ok') {
    const title = isFallback ? t('conversations.fellBack', { model }) : t('conversations.answered', { model })
    return { tone: 'good', title, ...time }
  }
  if (outcome === 'stopped')
    return { tone: 'warn', title: t('conversations.attemptStopped', { model }), ...time }
  const reason = text(causes, cause ?? undefined) || outcome
  const detail = status == null ? reason : `${reason} (HTTP ${status})`
  return { tone: 'bad', title: t('conversations.attemptFailed', { model }), detail, ...time }
}

const toolOutcomes: Readonly<Record<string, PlainKey>> = {
  invalid_arguments: 'conversations.toolInvalid',
  tool_error: 'conversations.toolReturnedError',
  tool_failed: 'conversations.toolFailed',
  timeout: 'conversations.causeTimeout',
  cancelled: 'conversations.cancelled',
  unknown_tool: 'conversations.toolUnknown',
  server_unavailable: 'conversations.toolUnavailable',
}

function toTool(tool: RanTool, totalMs: number): Step {
  const { name, origin, outcome, started_ms: from, duration_ms: durationMs, approval } = tool
  const place = origin === 'mcp' ? t('conversations.toolOfMcp') : t('conversations.toolOfServer')
  const problem = outcome === 'ok' ? '' : text(toolOutcomes, outcome) || outcome
  const asked = approval == null ? '' : t('conversations.approval', { answer: approval })
  return {
    tone: outcome === 'ok' ? 'good' : 'bad',
    title: t('conversations.calledTool', { name }),
    detail: [problem, place, asked].filter((part) => part !== '').join(' · '),
    durationMs,
    ...(from !== undefined && { span: { from: from / totalMs, to: (from + durationMs) / totalMs } }),
  }
}

const PAGE_TOOL = 'postMessage_'

/** The page runs its tools after the turn, and sends their results with the next one. */
function toPageCalls(turnId: string, items: readonly Item[]): Step[] {
  return items.flatMap((item): Step[] => {
    const { name, call_id: callId, parley } = item as CallItem
    const isPageCall =
      item.type === 'function_call' && parley?.turn_id === turnId && name?.startsWith(PAGE_TOOL)
    if (!isPageCall) return []
    const result = items.find(
      (one) => one.type === 'function_call_output' && (one as CallItem).call_id === callId,
    )
    const isAnswered = result?.parley?.author === 'page'
    const place = t('conversations.toolOfPage')
    const time = isAnswered ? (result.parley?.created_at ?? 0) - (parley?.created_at ?? 0) : undefined
    return [
      {
        tone: isAnswered ? 'good' : 'warn',
        title: t('conversations.calledTool', { name: name?.slice(PAGE_TOOL.length) ?? '' }),
        detail: isAnswered ? place : `${t('conversations.toolNoResult')} · ${place}`,
        ...(time !== undefined && { durationMs: time * 1_000 }),
      },
    ]
  })
}

type CallItem = Item & { readonly name?: string; readonly call_id?: string }

const stops: Readonly<Record<string, PlainKey>> = {
  cancelled: 'conversations.stopCancelled',
  taken_over: 'conversations.stopTakenOver',
  left: 'conversations.stopLeft',
  shutdown: 'conversations.stopShutdown',
}

function toEnd(turn: TurnDetails, { stopped, resumes = 0 }: Diagnostics): Step[] {
  const steps: Step[] = []
  if (resumes > 0) steps.push({ tone: 'quiet', title: t('conversations.resumed', { count: resumes }) })
  if (stopped != null) steps.push({ tone: 'warn', title: text(stops, stopped) || stopped })
  if (turn.status === 'completed' && turn.duration_ms !== null)
    steps.push({
      tone: 'good',
      title: t('conversations.finished', { time: renderMilliseconds(turn.duration_ms) }),
    })
  return steps
}

/** Returns the translated text for a code, or an empty string if the code is unknown. */
function text(texts: Readonly<Record<string, PlainKey>>, code: string | undefined): string {
  const key = texts[code ?? '']
  return key === undefined ? '' : t(key)
}

function nameOf(route: ModelRoute | null | undefined): string {
  return [route?.provider, route?.model].filter((part) => part !== undefined).join('/')
}
