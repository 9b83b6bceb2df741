/**
 * Runs a tool call. Checks its arguments, limits its time and result size, and reports failures to the model.
 */
import { StringDecoder } from 'node:string_decoder'
import type { Logger } from 'pino'
import type { JsonSchema } from '../lib/formats/json-schema.ts'
import type { TraceSpan } from '../telemetry/tracing.ts'
import { readArguments } from './arguments.ts'
import type { ServerTool, ToolAnswer, ToolCallContext } from './tools.ts'

export interface ToolCallRequest {
  readonly tool: ServerTool
  /** As the model wrote it; may not be valid JSON. */
  readonly argumentsText: string
  /** The schema in the agent's definition, which applies in addition to the tool's own. */
  readonly agentSchema: JsonSchema | undefined
  readonly span: TraceSpan | undefined
  readonly line: object
  /** Called with `ok`, or with the reason why the tool failed. */
  readonly onOutcome?: (outcome: ToolOutcome) => void
}

export type ToolOutcome =
  | 'ok'
  | 'invalid_arguments'
  | 'tool_error'
  | 'server_unavailable'
  | 'timeout'
  | 'cancelled'
  | 'tool_failed'

interface Dependencies {
  readonly log: Logger
  readonly config: { readonly timings: { readonly toolMs: number } }
}

export async function runTool(
  deps: Dependencies,
  request: ToolCallRequest,
  context: ToolCallContext,
): Promise<string> {
  const { tool, argumentsText, agentSchema } = request
  context.signal.throwIfAborted()
  const rules = [
    ...(tool.inputSchema === undefined ? [] : [{ schema: tool.inputSchema, origin: tool.origin }]),
    ...(agentSchema === undefined ? [] : [{ schema: agentSchema, origin: 'agent' as const }]),
  ]
  const read = readArguments(argumentsText, rules)
  if ('problem' in read) {
    fail(request, 'invalid_arguments')
    return `Error: the arguments of '${tool.name}' are invalid: ${read.problem}`
  }
  const answer = await answerInTime(deps, request, read.args, context)
  return capText('problem' in answer ? `Error: ${answer.problem}` : answer.text)
}

async function answerInTime(
  { config, log }: Dependencies,
  request: ToolCallRequest,
  args: Readonly<Record<string, unknown>>,
  context: ToolCallContext,
): Promise<ToolAnswer> {
  const { tool, line } = request
  const { toolMs } = config.timings
  const problem = `the tool '${tool.name}' did not respond within ${toolMs / 1000} seconds`
  const tooLate = new DOMException(problem, 'TimeoutError')
  const ending = new AbortController()
  const { signal } = ending
  const leave = () => ending.abort(context.signal.reason)
  context.signal.addEventListener('abort', leave)
  const timer = setTimeout(() => ending.abort(tooLate), toolMs)
  const ended = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
  const where = { tool: tool.name, ...line }
  try {
    const running = tool.run(args, { ...context, signal })
    const answer = await Promise.race([running, ended])
    if ('problem' in answer) fail(request, answer.isUnavailable ? 'server_unavailable' : 'tool_error')
    else request.onOutcome?.('ok')
    return answer
  } catch (thrown) {
    fail(request, thrown === tooLate ? 'timeout' : context.signal.aborted ? 'cancelled' : 'tool_failed')
    if (thrown === tooLate) {
      log.warn(where, 'tool timed out')
      return { problem }
    }
    if (context.signal.aborted) throw context.signal.reason
    log.warn({ ...where, err: thrown }, 'tool failed')
    return { problem: `the tool '${tool.name}' failed` }
  } finally {
    clearTimeout(timer)
    context.signal.removeEventListener('abort', leave)
  }
}

function fail({ span, onOutcome }: ToolCallRequest, outcome: ToolOutcome): void {
  span?.fail(outcome)
  onOutcome?.(outcome)
}

const MAX_RESULT_BYTES = 64 * 1024

/** Renders a host tool's result for the model: text unchanged, anything else as JSON. */
export function toAnswer(name: string, value: unknown): ToolAnswer {
  if (value === undefined) return { text: '' }
  if (typeof value === 'string') return { text: value }
  const text = toJson(value)
  return text === undefined
    ? { problem: `the tool '${name}' returned a value that cannot be encoded as JSON` }
    : { text }
}

function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

/** Truncates text longer than 64 KiB without splitting a character, and adds a note. */
export function capText(text: string): string {
  const wellFormed = text.toWellFormed()
  const sizeBytes = Buffer.byteLength(wellFormed)
  if (sizeBytes <= MAX_RESULT_BYTES) return wellFormed
  const note = `\n[The result was truncated: it has ${sizeBytes} bytes, and only the beginning is shown.]`
  const bytes = Buffer.from(wellFormed).subarray(0, MAX_RESULT_BYTES - Buffer.byteLength(note))
  // Drops an incomplete character at the end.
  return new StringDecoder().write(bytes) + note
}
