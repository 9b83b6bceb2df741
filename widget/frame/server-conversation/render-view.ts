/** Renders the state of a conversation on the server as the entries that the window shows. */
import type { VisitorTurn } from '../../../src/visitors/schema.ts'
import { toFailure } from '../chat/to-failure.ts'
import type { Entry, Reply, Round, ToolCall, UserMessage } from '../conversation.ts'
import type { Failure } from '../failure.ts'
import { type Exchange, type ExchangeGroup, isAside, toGroups } from './exchanges.ts'
import { isCut, isRunning, type Line, type View } from './view.ts'

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
    const groups = toGroups(view)
    const current = findCurrent(view, groups)
    const next: typeof rendered = new Map()
    for (const [index, group] of groups.entries()) {
      const isCurrent = index === current
      const { key } = group
      const sources = [...sourcesOf(view, group), ...(isCurrent ? [view] : [])]
      const before = rendered.get(key)
      const isSame =
        before?.sources.length === sources.length && before.sources.every((one, at) => one === sources[at])
      next.set(key, isSame ? before : { sources, entries: renderGroup(view, group, isCurrent) })
    }
    rendered = next
    return [...next.values()].flatMap(({ entries }) => entries)
  }
}

/** Returns everything that the entries of a group depend on. */
function sourcesOf(view: View, { earlier, isChangeable, key, ...newest }: ExchangeGroup): readonly unknown[] {
  const exchanges = [...earlier, newest]
  return [
    ...exchanges.flatMap(({ question, lines }) => [question, ...lines]),
    ...exchanges.map(({ lines }) => view.ratings.get(findAnswerTurn(lines) ?? '')),
    ...[view.mode === 'model', isChangeable, view.shownVersions.get(toReplyId(key))],
  ]
}

/**
 * Returns the index of the last exchange with an item of the newest turn, or of the last exchange if no
 * exchange has such an item.
 */
function findCurrent({ newestTurnId, mode }: View, exchanges: readonly ExchangeGroup[]): number {
  const last = exchanges.length - 1
  if (newestTurnId === undefined || (mode === 'model' && exchanges[last]?.question?.sending !== undefined))
    return last
  const found = exchanges.findLastIndex(({ question, lines }) =>
    [question, ...lines].some((line) => line?.turn_id === newestTurnId),
  )
  return found === -1 ? last : found
}

function renderGroup(view: View, group: ExchangeGroup, isCurrent: boolean): readonly Entry[] {
  const { question, lines, earlier, key, isChangeable } = group
  const asked = question === undefined ? [] : [renderQuestion(view, question, key, isChangeable)]
  const newest = renderAnswer(view, group, key, isCurrent)
  const answers = [...earlier.flatMap((one) => renderAnswer(view, one, key, false)), ...newest]
  return [...asked, ...chooseVersion(view, answers), ...lines.filter(isAside).map(renderAside)]
}

/** Returns the version of the answer that the visitor has chosen, or else the newest one. */
function chooseVersion({ shownVersions }: View, answers: readonly Reply[]): readonly Reply[] {
  const newest = answers.at(-1)
  if (newest === undefined || answers.length === 1) return answers
  const chosen = newest.status === 'streaming' ? undefined : shownVersions.get(newest.id)
  const at = Math.min(chosen ?? answers.length, answers.length - 1)
  const versions = { before: answers.slice(0, at), after: answers.slice(at + 1) }
  return [{ ...(answers[at] ?? newest), versions }]
}

function renderAnswer(view: View, exchange: Exchange, key: string, isCurrent: boolean): readonly Reply[] {
  const { question, lines } = exchange
  const answer = lines.filter((line) => !isAside(line))
  const isUnanswered = question !== undefined && question.turn_id === null && !isAnswered(view, question)
  return isUnanswered && answer.length === 0 ? [] : renderReply(view, exchange, answer, key, isCurrent)
}

/** Returns whether a model answers a message of this tab that the server has not confirmed. */
function isAnswered({ mode }: View, { sending }: Line): boolean {
  return sending !== undefined && mode === 'model'
}

function renderQuestion(view: View, question: Line, key: string, isChangeable: boolean): UserMessage {
  const { sending, text = '', created_at } = question
  const delivery = sending === 'running' ? 'sending' : sending
  return {
    ...{ kind: 'user', id: key, text, atMs: created_at * 1000 },
    ...filesOf(question),
    ...(isChangeable && { isChangeable, isUnsent: question.turn_id === null }),
    ...(delivery !== undefined && !isAnswered(view, question) && { delivery }),
  }
}

/** Renders a message of a person or of the service, or a change of who answers. */
function renderAside({ id, author, author_name, text = '', created_at, answering }: Line): Entry {
  const atMs = created_at * 1000
  if (author === 'person') return { kind: 'person', id, text, name: author_name ?? null, atMs }
  return { kind: 'note', id, atMs, note: answering ?? { text } }
}

function renderReply(
  view: View,
  { question, lines }: Exchange,
  answer: readonly Line[],
  key: string,
  isCurrent: boolean,
): readonly Reply[] {
  const state = isCurrent ? stateOf(view, question) : ({ status: 'done' } as const)
  const rounds = toRounds(view, answer, isCurrent)
  if (rounds.length === 0 && state.status === 'done') return []
  const shown = rounds.length === 0 ? [{ text: '', calls: [] }] : rounds
  const at = (answer[0] ?? question)?.created_at
  const ratable = findAnswerTurn(lines)
  const rating = view.ratings.get(ratable ?? '')
  const isTakenOver = lines.some(({ answering }) => answering?.mode === 'person')
  return [
    {
      ...{ kind: 'reply', id: toReplyId(key), rounds: shown },
      ...(at !== undefined && { atMs: at * 1000 }),
      ...(ratable !== undefined && { ratable }),
      ...(rating !== undefined && { rating }),
      ...(isTakenOver && { isTakenOver }),
      ...state,
    },
  ]
}

function toReplyId(key: string): string {
  return `reply ${key}`
}

/** Returns the turn of the model's last answer. */
function findAnswerTurn(lines: readonly Line[]): string | undefined {
  return lines.findLast(({ author }) => author === 'model')?.turn_id ?? undefined
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

/** Returns the state of the reply to the newest turn. */
function stateOf(view: View, question: Line | undefined): ReplyState {
  const { sending } = question ?? {}
  if (sending === 'running' || sending === 'delayed') return { status: 'streaming' }
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
      return view.repeating === turn.id
        ? { status: 'streaming' }
        : { status: 'failed', failure: toTurnFailure(turn) }
  }
}

function toReason(reason: string | null): NonNullable<Reply['incomplete']> {
  return reason === 'max_output_tokens' || reason === 'content_filter' ? reason : 'interrupted'
}

/**
 * A failed turn reports only a code. Uses the status 429 if the server sends the code with it in error
 * responses.
 */
function toTurnFailure({ error_code }: VisitorTurn): Failure {
  const code = error_code ?? ''
  if (code === 'budget_reserved') return { code: 'quota_spent' }
  if (code === 'insufficient_quota' || code === 'rate_limit_exceeded')
    return toFailure({ status: 429, code, retryAfterSeconds: undefined }, false)
  if (code === 'context_length_exceeded') return { code: 'too_long' }
  return { code: code === 'internal_error' ? 'server' : 'busy' }
}

/** Returns one round per turn; merges a turn that continues an unfinished answer into that answer's round. */
function toRounds(view: View, lines: readonly Line[], isCurrent: boolean): readonly Round[] {
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
  const answers = lines.filter(({ type }) => type !== 'function_call_output')
  const byTurn = Map.groupBy(answers, ({ turn_id }) => turn_id)
  for (const [turnId, parts] of byTurn) {
    const texts = parts.flatMap(({ type, text = '' }) => (type === 'message' && text !== '' ? [text] : []))
    const calls = parts
      .filter(({ type }) => type === 'function_call')
      .map((line) => renderCall(view, line, outputs.get(line.call_id ?? ''), isCurrent))
    const turn = view.turns.get(turnId ?? '')
    const isUnfinished = parts.some((part) => part.status === 'incomplete')
    add({ text: texts.join('\n\n'), calls }, isUnfinished || (turn !== undefined && isCut(turn)))
  }
  if (!isCurrent) return rounds
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

function renderCall(view: View, line: Line, output: Line | undefined, isCurrent: boolean): ToolCall {
  const here = view.calls.get(line.call_id ?? '')
  const call = { ...toCall(line), ...(here?.title !== undefined && { title: here.title }) }
  if (here?.status !== undefined && here.status !== 'unknown')
    return { ...call, ...here, status: here.status }
  if (line.status === 'incomplete') return { ...call, status: 'failed' }
  const mayRun = isCurrent && view.mode === 'model' && here === undefined
  if (output === undefined) return { ...call, status: mayRun ? 'running' : 'unknown' }
  const result = output.output ?? ''
  if (output.author === 'service') return { ...call, status: 'unknown' }
  return { ...call, result, status: result.startsWith('Error: ') ? 'failed' : 'done' }
}
