/** Groups the lines of a conversation by the visitor's messages, and finds what a visitor can change. */
import { findRunningTurn, isQuestion, type Line, type View } from './view.ts'

/** A message of the visitor, and everything that answers it. */
export interface Exchange {
  readonly question: Line | undefined
  readonly lines: readonly Line[]
}

/** An exchange, and the exchanges with earlier answers to the same message. */
export interface ExchangeGroup extends Exchange {
  /** Stays the same when another answer is requested. */
  readonly key: string
  /** Ordered oldest first. */
  readonly earlier: readonly Exchange[]
  readonly isChangeable: boolean
}

/** Omits the exchanges that an unconfirmed message of this tab replaces. */
export function toGroups(view: View): readonly ExchangeGroup[] {
  const { replaces } = view.lines.find((line) => line.replaces !== undefined) ?? {}
  const groups: (Exchange & { earlier: Exchange[] })[] = []
  let earlier: Exchange[] = []
  const exchanges = toExchanges(view.lines)
  for (const exchange of exchanges) {
    const turnId = exchange.question?.turn_id ?? ''
    const isReplaced = replaces?.turns.includes(turnId) ?? false
    if (isReplaced && replaces?.how === 'edited') continue
    if ((isReplaced || view.versions.has(turnId)) && exchange !== exchanges.at(-1)) earlier.push(exchange)
    else {
      groups.push({ ...exchange, earlier })
      earlier = []
    }
  }
  const lastAside = groups.findLastIndex(({ lines }) => lines.some(isAside))
  const isIdle =
    view.mode === 'model' && findRunningTurn(view) === undefined && view.tools?.state !== 'running'
  return groups.map((group, index) => {
    const { question } = group
    const { client_id, id } = group.earlier[0]?.question ?? question ?? { id: '', client_id: null }
    const isKnown =
      question !== undefined && (question.turn_id !== null || typeof question.sending === 'object')
    return { ...group, key: client_id ?? id, isChangeable: isIdle && isKnown && index > lastAside }
  })
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

/** Returns whether a line is a message of a person or of the service, or a change of who answers. */
export function isAside({ type, author }: Line): boolean {
  return type === 'message' && (author === 'person' || author === 'service')
}

/** Returns the ids of the turns of exchanges. */
export function turnsOf(exchanges: readonly Exchange[]): readonly string[] {
  const lines = exchanges.flatMap(({ question, lines: others }) => [question, ...others])
  return [...new Set(lines.flatMap((line) => line?.turn_id ?? []))]
}
