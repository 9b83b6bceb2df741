/** Reduces the events of a conversation on the server to its state in this tab. */
import type {
  FeedEvent,
  OpenResult,
  SendResult,
  VisitorItem,
  VisitorTurn,
} from '../../../src/visitors/schema.ts'
import type { Attachment } from '../attachments/attachments.ts'
import type { Answering, AnsweringMode, Rating, ToolCall } from '../conversation.ts'
import type { Failure } from '../failure.ts'

/** An item, a change of who answers, or a message of this tab that the server has not confirmed. */
export type Line = VisitorItem & {
  /** `delayed`: an attempt has failed, and another one follows. */
  readonly sending?: 'running' | 'delayed' | Failure
  /** Set if the line is a change of who answers. */
  readonly answering?: Answering
  /** The attachments of a message that this tab has sent. */
  readonly files?: readonly Attachment[]
  /** The turns that an unconfirmed message replaces. */
  readonly replaces?: Replaces
}

export interface Replaces {
  readonly how: 'edited' | 'regenerated'
  /** The turn whose message or answer is replaced. */
  readonly turn: string
  /** All turns that are replaced. */
  readonly turns: readonly string[]
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
  /** Id of the failed turn that this tab repeats. */
  readonly repeating: string | undefined
  readonly mode: AnsweringMode
  /** The visitor's ratings, by turn id. */
  readonly ratings: ReadonlyMap<string, Rating>
  /** The turns with earlier answers to a message, and the turns that replaced them. */
  readonly versions: ReadonlyMap<string, string>
  /** The position of the answer that is shown instead of the newest one, by reply id. */
  readonly shownVersions: ReadonlyMap<string, number>
}

export const emptyView: View = {
  lines: [],
  turns: new Map(),
  drafts: new Map(),
  newestTurnId: undefined,
  calls: new Map(),
  tools: undefined,
  repeating: undefined,
  mode: 'model',
  ratings: new Map(),
  versions: new Map(),
  shownVersions: new Map(),
}

type Replacement = Readonly<Omit<Extract<FeedEvent, { event: 'conversation.replaced' }>['data'], 'turns'>> & {
  readonly turns: readonly string[]
}

export type ViewAction =
  | { readonly type: 'opened'; readonly result: OpenResult }
  | { readonly type: 'event'; readonly event: FeedEvent }
  | {
      readonly type: 'sending'
      readonly clientId: string
      readonly text: string
      readonly files: readonly Attachment[]
      readonly replaces: Replaces | undefined
      readonly nowMs: number
    }
  /** Removes an unconfirmed message. */
  | { readonly type: 'dropped'; readonly clientId: string }
  | ({ readonly type: 'replaced' } & Replacement)
  /** Shows the answer at this position; undefined shows the newest one. */
  | { readonly type: 'version'; readonly replyId: string; readonly index: number | undefined }
  | { readonly type: 'send-failed'; readonly clientId: string; readonly failure: 'delayed' | Failure }
  | { readonly type: 'sent'; readonly result: SendResult }
  | { readonly type: 'turn'; readonly turn: VisitorTurn }
  | { readonly type: 'call-changed'; readonly callId: string; readonly change: Partial<ToolCall> }
  | { readonly type: 'tools'; readonly tools: View['tools'] }
  | { readonly type: 'repeating'; readonly turnId: string | undefined }
  /** The visitor has asked for a person; the change itself arrives as an event. */
  | { readonly type: 'person-requested' }
  | { readonly type: 'rated'; readonly turnId: string; readonly rating: Rating | undefined }

export function reduceView(view: View, action: ViewAction): View {
  switch (action.type) {
    case 'opened':
      return openView(view, action.result)
    case 'event':
      return applyEvent(view, action.event)
    case 'sending':
      return addSending(view, action)
    case 'dropped':
      return {
        ...view,
        repeating: undefined,
        lines: view.lines.filter((line) => !isUnsent(line, action.clientId)),
      }
    case 'replaced':
      return replaceTurns(view, action)
    case 'version': {
      const shownVersions = new Map(view.shownVersions)
      if (action.index === undefined) shownVersions.delete(action.replyId)
      else shownVersions.set(action.replyId, action.index)
      return { ...view, shownVersions }
    }
    case 'send-failed':
      return changeLine(view, action.clientId, { sending: action.failure })
    case 'sent': {
      const { item, turn } = action.result
      if (turn === null) return setLine(view, item)
      const { replaces } = view.lines.find((line) => line.client_id === item.client_id) ?? {}
      const now = replaces === undefined ? view : replaceTurns(view, { ...replaces, by: turn.id })
      return addTurn(setLine(now, item), turn)
    }
    case 'turn':
      return addTurn(view, action.turn)
    case 'call-changed': {
      const change = { ...view.calls.get(action.callId), ...action.change }
      return { ...view, calls: new Map(view.calls).set(action.callId, change) }
    }
    case 'tools':
      return { ...view, tools: action.tools }
    case 'repeating':
      return { ...view, repeating: action.turnId }
    case 'person-requested':
      return view.mode === 'model' ? { ...view, mode: 'waiting' } : view
    case 'rated':
      return { ...view, ratings: setRating(view.ratings, action.turnId, action.rating) }
  }
}

function addSending(
  view: View,
  { clientId, text, nowMs, files, replaces }: Extract<ViewAction, { type: 'sending' }>,
): View {
  const line = { ...toLine(clientId, text, nowMs), files, ...(replaces !== undefined && { replaces }) }
  // A message that replaces others is sent instead of the unsent ones.
  const lines = replaces === undefined ? view.lines : view.lines.filter((one) => !one.sending)
  return setLine({ ...view, lines, shownVersions: new Map() }, line)
}

/** Keeps the lines of earlier answers, and removes those of other replaced turns. */
function replaceTurns(view: View, { how, turns, by }: Replacement): View {
  const versions = new Map(view.versions)
  for (const turn of turns) {
    if (how === 'regenerated' && by !== null) versions.set(turn, by)
    else versions.delete(turn)
  }
  if (how === 'regenerated') return { ...view, versions }
  const removed = new Set(turns)
  const lines = view.lines.filter(({ turn_id }) => turn_id === null || !removed.has(turn_id))
  const isNewest = removed.has(view.newestTurnId ?? '')
  const newest = lines.findLast(({ turn_id }) => turn_id !== null)?.turn_id ?? undefined
  return { ...view, versions, lines, newestTurnId: isNewest ? newest : view.newestTurnId }
}

function setRating(ratings: View['ratings'], turnId: string, rating: Rating | undefined): View['ratings'] {
  const changed = new Map(ratings)
  if (rating === undefined) changed.delete(turnId)
  else changed.set(turnId, rating)
  return changed
}

/** Returns who answers. After a person's message, its author is known even if the change is not. */
export function findAnswering({ mode, lines }: View): Answering {
  if (mode !== 'person') return { mode, name: null }
  const last = lines.findLast(({ author, answering }) => author === 'person' || answering?.mode === 'person')
  return { mode, name: last?.answering?.name ?? last?.author_name ?? null }
}

/** Replaces everything that the server has stored; keeps messages that the server has not received. */
function openView(view: View, { conversation, items, modes, ratings, turn, versions }: OpenResult): View {
  const known = new Set(items.map(({ client_id }) => client_id))
  const unsent = view.lines.filter(({ sending, client_id }) => sending !== undefined && !known.has(client_id))
  const changes = Map.groupBy(
    modes.map((change, index) => ({ ...change, index })),
    ({ after }) => after,
  )
  const changesAfter = (id: string | null) =>
    (changes.get(id) ?? []).map(({ index, ...change }) => toModeLine(`mode ${index}`, change))
  return {
    ...view,
    lines: [...changesAfter(null), ...items.flatMap((item) => [item, ...changesAfter(item.id)]), ...unsent],
    mode: conversation.mode,
    versions: new Map(versions.map(({ turn: id, by }) => [id, by])),
    ratings: new Map(ratings.map(({ turn: id, ...rating }) => [id, rating])),
    turns: new Map(turn === null ? [] : [[turn.id, turn]]),
    drafts: new Map(),
    newestTurnId: turn?.id,
  }
}

interface ModeChange extends Answering {
  /** Unix seconds. */
  readonly since: number
}

function toModeLine(id: string, { mode, name, since }: ModeChange): Line {
  return {
    ...{ id, client_id: null, turn_id: null, type: 'message', author: 'service', status: 'completed' },
    created_at: since,
    answering: { mode, name },
  }
}

function applyEvent(view: View, { id, event, data }: FeedEvent): View {
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
      return { ...setLine(view, toModeLine(id, data)), mode: data.mode }
    case 'conversation.replaced':
      return replaceTurns(view, data)
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
    index === -1
      ? view.lines.toSpliced(findPlace(view, line), 0, line)
      : view.lines.with(index, withFiles(line, view.lines[index]))
  return { ...view, lines }
}

/** Returns the index of a new line: after the lines of its turn, and before unsent messages. */
function findPlace({ lines }: View, { turn_id, sending }: Line): number {
  const ofTurn = turn_id === null ? -1 : lines.findLastIndex((line) => line.turn_id === turn_id)
  if (ofTurn >= 0) return ofTurn + 1
  const firstUnsent = lines.findIndex((line) => line.sending !== undefined)
  return sending !== undefined || firstUnsent === -1 ? lines.length : firstUnsent
}

/** Keeps the attachments, so that the tab that sent them does not read them from the server. */
function withFiles(line: Line, { files }: Pick<Line, 'files'> = {}): Line {
  return files === undefined ? line : { ...line, files }
}

function changeLine(view: View, clientId: string, change: Partial<Line>): View {
  return {
    ...view,
    lines: view.lines.map((line) => (isUnsent(line, clientId) ? { ...line, ...change } : line)),
  }
}

function isUnsent({ client_id, sending }: Line, clientId: string): boolean {
  return client_id === clientId && sending !== undefined
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

export function isQuestion({ type, author }: VisitorItem): boolean {
  return type === 'message' && author === 'visitor'
}

/** Returns whether the turn ended before its answer was complete. */
export function isCut({ status }: VisitorTurn): boolean {
  return status === 'incomplete' || status === 'cancelled'
}

export function isRunning({ status }: VisitorTurn): boolean {
  return status === 'queued' || status === 'in_progress'
}

export function findRunningTurn({ turns, newestTurnId = '' }: View): VisitorTurn | undefined {
  const turn = turns.get(newestTurnId)
  return turn !== undefined && isRunning(turn) ? turn : undefined
}

/** Returns the messages that could not be sent. */
export function listUnsent({ lines }: View): readonly Line[] {
  return lines.filter(({ sending }) => typeof sending === 'object')
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
