/** Reduces the events of a conversation on the server to the entries that the window shows. */
import type {
  FeedEvent,
  OpenResult,
  SendResult,
  VisitorItem,
  VisitorTurn,
} from '../../../src/visitors/schema.ts'
import type { Attachment } from '../attachments/attachments.ts'
import { toFailure } from '../chat/to-failure.ts'
import type { Entry, Reply, Round, ToolCall, UserMessage } from '../conversation.ts'
import type { Failure } from '../failure.ts'

/** An item, or a message of this tab that the server has not confirmed. */
export type Line = VisitorItem & {
  readonly sending?: 'running' | Failure
  /** The attachments of a message that this tab has sent. */
  readonly files?: readonly Attachment[]
}

export interface View {
  /** Ordered oldest first. */
  readonly lines: readonly Line[]
  readonly turns: ReadonlyMap<string, VisitorTurn>
  /** Streamed text of turns whose items have not arrived. */
  readonly drafts: ReadonlyMap<string, string>
  /** Id of the turn that belongs to the newest message. */
  readonly newestTurnId: string | undefined
  /** The progress of this tab's calls and of overdue calls, by call id. */
  readonly calls: ReadonlyMap<string, Partial<ToolCall>>
  /** The turn whose calls run in this tab. A failure means that their results could not be sent. */
  readonly tools: { readonly turnId: string; readonly state: 'running' | 'stopped' | Failure } | undefined
}

export const emptyView: View = {
  lines: [],
  turns: new Map(),
  drafts: new Map(),
  newestTurnId: undefined,
  calls: new Map(),
  tools: undefined,
}

export type ViewAction =
  | { readonly type: 'opened'; readonly result: OpenResult }
  | { readonly type: 'event'; readonly event: FeedEvent }
  | {
      readonly type: 'sending'
      readonly clientId: string
      readonly text: string
      readonly files: readonly Attachment[]
      readonly nowMs: number
    }
  | { readonly type: 'send-failed'; readonly clientId: string; readonly failure: Failure }
  | { readonly type: 'sent'; readonly result: SendResult }
  | { readonly type: 'turn'; readonly turn: VisitorTurn }
  | { readonly type: 'call-changed'; readonly callId: string; readonly change: Partial<ToolCall> }
  | { readonly type: 'tools'; readonly tools: View['tools'] }

export function reduceView(view: View, action: ViewAction): View {
  switch (action.type) {
    case 'opened':
      return openView(view, action.result)
    case 'event':
      return applyEvent(view, action.event)
    case 'sending':
      return setLine(view, { ...toLine(action.clientId, action.text, action.nowMs), files: action.files })
    case 'send-failed':
      return changeLine(view, action.clientId, { sending: action.failure })
    case 'sent': {
      const { item, turn } = action.result
      return turn === null ? setLine(view, item) : addTurn(setLine(view, item), turn)
    }
    case 'turn':
      return addTurn(view, action.turn)
    case 'call-changed': {
      const change = { ...view.calls.get(action.callId), ...action.change }
      return { ...view, calls: new Map(view.calls).set(action.callId, change) }
    }
    case 'tools':
      return { ...view, tools: action.tools }
  }
}

/** Replaces everything that the server has stored; keeps messages that the server has not received. */
function openView(view: View, { items, turn }: OpenResult): View {
  const known = new Set(items.map(({ client_id }) => client_id))
  const unsent = view.lines.filter(({ sending, client_id }) => sending !== undefined && !known.has(client_id))
  return {
    ...view,
    lines: [...items, ...unsent],
    turns: new Map(turn === null ? [] : [[turn.id, turn]]),
    drafts: new Map(),
    newestTurnId: turn?.id,
  }
}

function applyEvent(view: View, { event, data }: FeedEvent): View {
  switch (event) {
    case 'conversation.item':
      return addItem(view, data.item)
    case 'conversation.turn.started':
    case 'conversation.turn.ended':
      return addTurn(view, data.turn)
    case 'conversation.turn.delta': {
      const text = (view.drafts.get(data.turn) ?? '') + (data.text ?? '')
      return { ...view, drafts: new Map(view.drafts).set(data.turn, text) }
    }
    case 'conversation.mode':
      return view
  }
}

function addItem(view: View, item: VisitorItem): View {
  const added = withoutDraft(setLine(view, item), item)
  if (!isQuestion(item) || item.turn_id === null || added.turns.has(item.turn_id)) return added
  // The answer starts with the message, even if the event about the turn arrives later.
  return addTurn(added, { id: item.turn_id, status: 'queued', reason: null, error_code: null })
}

/** The items of a turn replace its streamed text. */
function withoutDraft(view: View, { author, turn_id }: VisitorItem): View {
  if (author !== 'model' || turn_id === null || !view.drafts.has(turn_id)) return view
  const drafts = new Map(view.drafts)
  drafts.delete(turn_id)
  return { ...view, drafts }
}

/** A response can arrive after the event that reports the turn's end, so an ended turn stays ended. */
function addTurn(view: View, turn: VisitorTurn): View {
  const known = view.turns.get(turn.id)
  const isLate = known !== undefined && !isRunning(known)
  return {
    ...view,
    turns: isLate ? view.turns : new Map(view.turns).set(turn.id, turn),
    newestTurnId: known === undefined ? turn.id : view.newestTurnId,
  }
}

/** Replaces the line with the same id or client id, so that nothing is shown twice. */
function setLine(view: View, line: Line): View {
  const isSame = ({ id, client_id }: Line) =>
    id === line.id || (client_id !== null && client_id === line.client_id)
  const index = view.lines.findIndex(isSame)
  const lines =
    index === -1 ? [...view.lines, line] : view.lines.with(index, withFiles(line, view.lines[index]))
  return { ...view, lines }
}

/** Keeps the attachments, so that the tab that sent them does not read them from the server. */
function withFiles(line: Line, { files }: Pick<Line, 'files'> = {}): Line {
  return files === undefined ? line : { ...line, files }
}

function changeLine(view: View, clientId: string, change: Partial<Line>): View {
  const isChanged = (line: Line) => line.client_id === clientId && line.sending !== undefined
  return { ...view, lines: view.lines.map((line) => (isChanged(line) ? { ...line, ...change } : line)) }
}

function toLine(clientId: string, text: string, nowMs: number): Line {
  return {
    id: clientId,
    client_id: clientId,
    turn_id: null,
    type: 'message',
    author: 'visitor',
    status: 'completed',
    created_at: Math.floor(nowMs / 1000),
    text,
    sending: 'running',
  }
}

function isQuestion({ type, author }: VisitorItem): boolean {
  return type === 'message' && author === 'visitor'
}

/** Returns whether the turn ended before its answer was complete. */
function isCut({ status }: VisitorTurn): boolean {
  return status === 'incomplete' || status === 'cancelled'
}

export function isRunning({ status }: VisitorTurn): boolean {
  return status === 'queued' || status === 'in_progress'
}

/** Returns the running turn, if there is one. */
export function findRunningTurn({ turns, newestTurnId = '' }: View): VisitorTurn | undefined {
  const turn = turns.get(newestTurnId)
  return turn !== undefined && isRunning(turn) ? turn : undefined
}

/** Returns the last message that could not be sent. */
export function findUnsent({ lines }: View): Line | undefined {
  return lines.findLast(({ sending }) => typeof sending === 'object')
}

/** Returns the calls of page tools that have no result. */
export function listOpenCalls({ lines }: View): readonly Line[] {
  const answered = new Set(
    lines.flatMap(({ type, call_id }) => (type === 'function_call_output' ? [call_id] : [])),
  )
  return lines.filter(
    ({ type, status, call_id }) =>
      type === 'function_call' && status === 'completed' && !answered.has(call_id),
  )
}

/** A message of the visitor, and everything that answers it. */
interface Exchange {
  readonly question: Line | undefined
  readonly lines: readonly Line[]
}

/**
 * Returns a function that renders the view. It returns the same objects for entries that have not changed, so
 * that the window does not render them again.
 */
export function createEntryRenderer(): (view: View) => readonly Entry[] {
  let rendered = new Map<
    string,
    { readonly sources: readonly unknown[]; readonly entries: readonly Entry[] }
  >()
  return (view) => {
    const exchanges = toExchanges(view.lines)
    const next: typeof rendered = new Map()
    for (const [index, exchange] of exchanges.entries()) {
      const isNewest = index === exchanges.length - 1
      const key = exchange.question?.client_id ?? exchange.question?.id ?? ''
      const sources = [exchange.question, ...exchange.lines, ...(isNewest ? [view] : [])]
      const before = rendered.get(key)
      const isSame =
        before?.sources.length === sources.length && before.sources.every((one, at) => one === sources[at])
      next.set(key, isSame ? before : { sources, entries: renderExchange(view, exchange, key, isNewest) })
    }
    rendered = next
    return [...next.values()].flatMap(({ entries }) => entries)
  }
}

function toExchanges(lines: readonly Line[]): readonly Exchange[] {
  const exchanges: { question: Line | undefined; lines: Line[] }[] = []
  for (const line of lines) {
    if (isQuestion(line)) exchanges.push({ question: line, lines: [] })
    else if (exchanges.length === 0) exchanges.push({ question: undefined, lines: [line] })
    else exchanges.at(-1)?.lines.push(line)
  }
  return exchanges
}

function renderExchange(
  view: View,
  { question, lines }: Exchange,
  key: string,
  isNewest: boolean,
): readonly Entry[] {
  const asked: readonly Entry[] =
    question === undefined
      ? []
      : [
          {
            kind: 'user',
            id: key,
            text: question.text ?? '',
            atMs: question.created_at * 1000,
            ...filesOf(question),
          },
        ]
  const state = isNewest ? stateOf(view, question) : ({ status: 'done' } as const)
  const rounds = toRounds(view, lines, isNewest)
  if (rounds.length === 0 && state.status === 'done') return asked
  const shown = rounds.length === 0 ? [{ text: '', calls: [] }] : rounds
  const at = (lines[0] ?? question)?.created_at
  const time = at === undefined ? {} : { atMs: at * 1000 }
  return [...asked, { kind: 'reply', id: `reply ${key}`, rounds: shown, ...time, ...state }]
}

function filesOf({ id, files, attachments = [] }: Line): Pick<UserMessage, 'attachments'> {
  if (files !== undefined && files.length > 0) return { attachments: files }
  if (attachments.length === 0) return {}
  return {
    attachments: attachments.map(({ type, name, part }) => ({
      ...{ id: `${id} ${part}`, type, name },
      stored: { item: id, part },
    })),
  }
}

type ReplyState = Pick<Reply, 'status' | 'failure' | 'incomplete' | 'continuable'>

/** Returns the state of the newest reply. */
function stateOf(view: View, question: Line | undefined): ReplyState {
  const { sending } = question ?? {}
  if (sending === 'running') return { status: 'streaming' }
  if (sending !== undefined) return { status: 'failed', failure: sending }
  const turn = view.turns.get(view.newestTurnId ?? '')
  if (turn === undefined) return { status: 'done' }
  if (view.tools?.turnId === turn.id) {
    const { state } = view.tools
    if (typeof state === 'object') return { status: 'failed', failure: state }
    return { status: state === 'running' ? 'streaming' : 'stopped' }
  }
  switch (turn.status) {
    case 'queued':
    case 'in_progress':
      return { status: 'streaming' }
    case 'completed':
      return { status: 'done' }
    case 'cancelled':
      return { status: 'stopped', continuable: turn.id }
    case 'incomplete':
      return { status: 'interrupted', incomplete: toReason(turn.reason), continuable: turn.id }
    case 'failed':
      return { status: 'failed', failure: toTurnFailure(turn) }
  }
}

function toReason(reason: string | null): NonNullable<Reply['incomplete']> {
  return reason === 'max_output_tokens' || reason === 'content_filter' ? reason : 'interrupted'
}

/** A failed turn reports only a code. Uses the status 429 if the server sends the code with it in error responses. */
function toTurnFailure({ error_code }: VisitorTurn): Failure {
  const code = error_code ?? ''
  if (code === 'insufficient_quota' || code === 'rate_limit_exceeded')
    return toFailure({ status: 429, code, retryAfterSeconds: undefined }, false)
  if (code === 'context_length_exceeded') return { code: 'too_long' }
  return { code: code === 'internal_error' ? 'server' : 'busy' }
}

/** Returns one round per turn; merges a turn that continues an unfinished answer into that answer's round. */
function toRounds(view: View, lines: readonly Line[], isNewest: boolean): readonly Round[] {
  const outputs = new Map(
    lines.flatMap((line) => (line.type === 'function_call_output' ? [[line.call_id ?? '', line]] : [])),
  )
  const rounds: (Round & { readonly isUnfinished: boolean })[] = []
  function add(round: Round, isUnfinished: boolean): void {
    const last = rounds.at(-1)
    if (last?.isUnfinished && last.calls.length === 0)
      rounds[rounds.length - 1] = { ...round, text: last.text + round.text, isUnfinished }
    else rounds.push({ ...round, isUnfinished })
  }
  const answers = lines.filter(
    ({ type, author }) => type === 'function_call' || (type === 'message' && author !== 'service'),
  )
  const byTurn = Map.groupBy(answers, ({ turn_id }) => turn_id)
  for (const [turnId, parts] of byTurn) {
    const texts = parts.flatMap(({ type, text = '' }) => (type === 'message' && text !== '' ? [text] : []))
    const calls = parts
      .filter(({ type }) => type === 'function_call')
      .map((line) => renderCall(view, line, outputs.get(line.call_id ?? ''), isNewest))
    const turn = view.turns.get(turnId ?? '')
    const isUnfinished = parts.some((part) => part.status === 'incomplete')
    add({ text: texts.join('\n\n'), calls }, isUnfinished || (turn !== undefined && isCut(turn)))
  }
  if (!isNewest) return rounds
  // The items of the newest turn arrive when it ends.
  const turn = view.turns.get(view.newestTurnId ?? '')
  const draft = view.drafts.get(turn?.id ?? '')
  if (turn !== undefined && !byTurn.has(turn.id) && (draft !== undefined || isRunning(turn)))
    add({ text: draft ?? '', calls: [] }, isCut(turn))
  return rounds
}

/** Returns the call without its progress. */
export function toCall({
  call_id = '',
  name = '',
  arguments: argumentsText = '',
}: Line): Omit<ToolCall, 'status'> {
  return { id: call_id, name, argumentsText }
}

function renderCall(view: View, line: Line, output: Line | undefined, isNewest: boolean): ToolCall {
  const here = view.calls.get(line.call_id ?? '')
  const call = { ...toCall(line), ...(here?.title !== undefined && { title: here.title }) }
  if (here?.status !== undefined && here.status !== 'unknown')
    return { ...call, ...here, status: here.status }
  if (line.status === 'incomplete') return { ...call, status: 'failed' }
  if (output === undefined) return { ...call, status: isNewest && here === undefined ? 'running' : 'unknown' }
  const result = output.output ?? ''
  if (output.author === 'service') return { ...call, status: 'unknown' }
  return { ...call, result, status: result.startsWith('Error: ') ? 'failed' : 'done' }
}
