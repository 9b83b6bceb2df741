/** Decides which tools the mock provider calls, and with which arguments. */
import { isJsonObject, type JsonObject, listObjects } from '../../lib/formats/json.ts'
import type { Directives, ToolCall } from './directives.ts'
import { sampleSchema } from './sample-schema.ts'

interface ToolChoice {
  readonly mode: 'none' | 'auto' | 'required'
  /** The only tools that may be called; undefined for all. */
  readonly names?: ReadonlySet<string>
}

/**
 * The calls of an answer, none for a text answer: those of directives, else the offered tools that the text names, else the first
 * offered tool if a call is required. None after a tool result or with `tool_choice` `none`; at most one without parallel calls.
 */
export function chooseToolCalls(body: JsonObject, { text, toolCalls }: Directives): readonly ToolCall[] {
  const choice = parseToolChoice(body.tool_choice)
  if (choice.mode === 'none' || listObjects(body.messages).at(-1)?.role === 'tool') return []
  const calls = toolCalls.length > 0 ? toolCalls : callOffered(listOffered(body.tools, choice), choice, text)
  return body.parallel_tool_calls === false ? calls.slice(0, 1) : calls
}

function parseToolChoice(value: unknown): ToolChoice {
  if (value === 'none' || value === 'required') return { mode: value }
  if (!isJsonObject(value)) return { mode: 'auto' }
  if (value.type === 'allowed_tools' && isJsonObject(value.allowed_tools)) {
    const { mode, tools } = value.allowed_tools
    return { mode: mode === 'required' ? mode : 'auto', names: new Set(listFunctions(tools).map(nameOf)) }
  }
  return isJsonObject(value.function)
    ? { mode: 'required', names: new Set([nameOf(value.function)]) }
    : { mode: 'auto' }
}

function listOffered(tools: unknown, { names }: ToolChoice): ReadonlyMap<string, JsonObject> {
  const offered = listFunctions(tools).map((tool) => [nameOf(tool), tool] as const)
  return new Map(offered.filter(([name]) => name !== '' && (names === undefined || names.has(name))))
}

function callOffered(
  offered: ReadonlyMap<string, JsonObject>,
  { mode }: ToolChoice,
  text: string,
): readonly ToolCall[] {
  const mentioned = [...offered.keys()]
    .map((name) => ({ name, at: findName(text, name) }))
    .filter(({ at }) => at !== -1)
    .sort((one, other) => one.at - other.at)
    .map(({ name }) => name)
  const names = mentioned.length === 0 && mode === 'required' ? [...offered.keys()].slice(0, 1) : mentioned
  if (names.length === 0) return []
  const hints = parseHints(text)
  return names.map((name) => ({ name, argumentsText: makeArguments(offered.get(name)?.parameters, hints) }))
}

/** The index of a tool's name as a whole word; -1 if absent. */
function findName(text: string, name: string): number {
  const isNamePart = (character: string | undefined) => character !== undefined && /[\w-]/.test(character)
  let at = text.indexOf(name)
  while (at !== -1 && (isNamePart(text[at - 1]) || isNamePart(text[at + name.length]))) {
    at = text.indexOf(name, at + 1)
  }
  return at
}

/** The `key=value` words of a text; values with spaces are quoted, and punctuation after a value is not part of it. */
function parseHints(text: string): ReadonlyMap<string, string> {
  const words = text.matchAll(/(?<![\p{L}\p{N}_.-])([\p{L}_][\p{L}\p{N}_.-]{0,63})=("[^"]*"|'[^']*'|\S+)/gu)
  const hints = new Map<string, string>()
  for (const [, key = '', value = ''] of words) {
    const isQuoted = /^(".*"|'.*')$/s.test(value)
    hints.set(key, isQuoted ? value.slice(1, -1) : stripPunctuation(value))
  }
  return hints
}

function stripPunctuation(value: string): string {
  let end = value.length
  while (end > 1 && '.,;:!?)'.includes(value[end - 1] ?? ' ')) end -= 1
  return value.slice(0, end)
}

function makeArguments(parameters: unknown, hints: ReadonlyMap<string, string>): string {
  const instance = sampleSchema(parameters, hints)
  return JSON.stringify(isJsonObject(instance) ? instance : {})
}

function listFunctions(tools: unknown): readonly JsonObject[] {
  return listObjects(tools).flatMap((tool) => listObjects([tool.function]))
}

function nameOf(tool: JsonObject): string {
  return typeof tool.name === 'string' ? tool.name : ''
}
