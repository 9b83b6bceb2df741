/**
 * Parses a provider's JSON with limits, so that an answer can neither block the process nor fill its memory.
 */
import { toBuffer } from '../../lib/bytes.ts'
import { isSurelyWithin, outlineOf } from '../../lib/formats/json.ts'
import { BackendFailure } from '../../providers/provider.ts'

/** The same limit as for requests, because code that handles the answer may recurse. */
const MAX_DEPTH = 64
/** High, because log probabilities have about 160 values per token. */
const MAX_ANSWER_VALUES = 1_000_000
const MAX_EVENT_VALUES = 50_000
/** The same as the maximum number of tools in a request. */
const MAX_TOOL_CALLS = 128
/** Some providers send more choices than the request asks for. */
const MAX_UNREQUESTED_CHOICES = 8

/** @throws BackendFailure `protocol` for JSON that is invalid, too deep or has too many values. */
export function parseCompletion(bytes: Uint8Array): unknown {
  return parse(toBuffer(bytes).toString('utf8'), 'the answer', MAX_ANSWER_VALUES)
}

/** @throws BackendFailure `protocol` for JSON that is invalid, too deep or has too many values. */
export function parseEvent(data: string): unknown {
  return parse(data, 'an event', MAX_EVENT_VALUES)
}

/** @throws BackendFailure `protocol` for more tool calls than one choice may have. */
export function assertCallCount(count: number): void {
  assertAtMost(count, MAX_TOOL_CALLS, 'a choice', 'tool calls')
}

/** @throws BackendFailure `protocol` for more choices than requested and than `MAX_UNREQUESTED_CHOICES`. */
export function assertChoiceCount(count: number, requested: number): void {
  assertAtMost(count, Math.max(requested, MAX_UNREQUESTED_CHOICES), 'the answer', 'choices')
}

function parse(text: string, what: string, mostValues: number): unknown {
  if (!isSurelyWithin(text, MAX_DEPTH, mostValues)) {
    const { depth, values } = outlineOf(Buffer.from(text), mostValues)
    assertAtMost(depth, MAX_DEPTH, what, 'levels of nesting')
    assertAtMost(values, mostValues, what, 'values')
  }
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new BackendFailure('protocol', `${what} is not JSON`, { cause })
  }
}

function assertAtMost(count: number, most: number, what: string, counted: string): void {
  if (count > most) throw new BackendFailure('protocol', `${what} has more than ${most} ${counted}`)
}
