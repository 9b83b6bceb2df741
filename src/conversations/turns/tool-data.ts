/** Removes tool arguments and results from stored turns, for agents with `toolData: names`. */
import { isJsonObject, type JsonObject, listObjects, parseJson } from '../../lib/formats/json.ts'
import type { NewItem } from '../item-store.ts'
import type { LoggedEnd, LoggedStep } from '../turn-output.ts'
import { entriesOf, joinEntries, type LogEntry, type LogRun } from './segments.ts'

const NO_ARGUMENTS = '{}'
const NO_RESULT = 'The result was not stored.'

/** Returns the item without a call's arguments or result. */
export function withoutToolData(item: NewItem): NewItem {
  if (item.type === 'function_call') return { ...item, body: { ...item.body, arguments: NO_ARGUMENTS } }
  if (item.type === 'function_call_output') return { ...item, body: { ...item.body, output: NO_RESULT } }
  return item
}

/**
 * Rewrites a turn's entries for storage. A stored entry renders as many events as the original, so that event
 * numbers stay the same: the first part of the arguments becomes `{}`, and each other part becomes a space.
 */
export class ToolDataFilter {
  private readonly begun = new Set<string>()

  apply(run: LogRun): LogRun {
    const entries = [...entriesOf(run)]
    const texts = entries.map((entry) => this.rewrite(entry))
    if (texts.every((text) => text === undefined)) return run
    const stored = entries.map(({ bytes }, index) => {
      const text = texts[index]
      return text === undefined ? bytes : Buffer.from(text)
    })
    return joinEntries(run.kind, stored)
  }

  /** Returns undefined for an entry that can be stored unchanged. */
  private rewrite({ kind, bytes }: LogEntry): string | undefined {
    if (kind === 'step') return rewriteStep(JSON.parse(bytes.toString()))
    if (!bytes.includes('"tool_calls"') && !bytes.includes('"function_call"')) return undefined
    const text = bytes.toString()
    const start = text.indexOf('{')
    const answer = parseJson(text.slice(start))
    if (!isJsonObject(answer)) return undefined
    for (const choice of listObjects(answer.choices)) {
      if (kind === 'completion') rewriteCalls(choice.message, () => NO_ARGUMENTS)
      else
        rewriteCalls(choice.delta, (call, sent) => this.toPart(`${choice.index}:${call.index}`, call, sent))
    }
    return text.slice(0, start) + JSON.stringify(answer) + (kind === 'chat' ? '\n\n' : '')
  }

  private toPart(place: string, call: JsonObject, sent: string): string {
    // A call with an id is a new call, even if an earlier call had the same position.
    if (call.id !== undefined) this.begun.delete(place)
    if (sent === '') return ''
    const isFirst = !this.begun.has(place)
    this.begun.add(place)
    return isFirst ? NO_ARGUMENTS : ' '
  }
}

function rewriteStep(step: LoggedStep | LoggedEnd): string | undefined {
  if (step.type === 'tool_call') return JSON.stringify({ ...step, arguments: NO_ARGUMENTS })
  if (step.type === 'tool_result') return JSON.stringify({ ...step, content: NO_RESULT })
  return undefined
}

type Rewrite = (call: JsonObject, sent: string) => string

/** Changes the arguments in a message or delta, for each call format of the chat API. */
function rewriteCalls(message: unknown, rewrite: Rewrite): void {
  if (!isJsonObject(message)) return
  for (const call of listObjects(message.tool_calls)) {
    rewriteField(call.function, 'arguments', (sent) => rewrite(call, sent))
    rewriteField(call.custom, 'input', (sent) => rewrite(call, sent))
  }
  rewriteField(message.function_call, 'arguments', (sent) => rewrite({}, sent))
}

function rewriteField(called: unknown, name: string, rewrite: (sent: string) => string): void {
  if (!isJsonObject(called)) return
  const fields: Record<string, unknown> = called
  if (typeof fields[name] === 'string') fields[name] = rewrite(fields[name])
}
