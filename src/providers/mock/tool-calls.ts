/** Decides which tools the mock provider calls, and with which arguments. */
import { isJsonObject, type JsonObject, listObjects } from '../../lib/formats/json.ts'
import { parseToolChoice } from '../render-answer.ts'
import type { Directives, ToolCall } from './directives.ts'
import { sampleSchema } from './sample-schema.ts'

/** Calls the tools of directives, else the offered tools that the text names, else the first one if a call is required. */
export function chooseToolCalls(body: JsonObject, { text, toolCalls }: Directives): readonly ToolCall[] {
  const { mode, names } = parseToolChoice(body.tool_choice) ?? { mode: 'auto' }
  if (mode === 'none' || listObjects(body.messages).at(-1)?.role === 'tool') return []
  const calls =
    toolCalls.length > 0 ? toolCalls : callOffered(listOffered(body.tools, names), mode === 'required', text)
  return body.parallel_tool_calls === false ? calls.slice(0, 1) : calls
}

function listOffered(
  tools: unknown,
  names: ReadonlySet<unknown> | undefined,
): ReadonlyMap<string, JsonObject> {
  const offered = listObjects(tools).flatMap((tool) => listObjects([tool.function]))
  return new Map(
    offered.flatMap((tool) => {
      const { name } = tool
      const isOffered = typeof name === 'string' && name !== '' && (names === undefined || names.has(name))
      return isOffered ? [[name, tool]] : []
    }),
  )
}

function callOffered(
  offered: ReadonlyMap<string, JsonObject>,
  isRequired: boolean,
  text: string,
): readonly ToolCall[] {
  const mentioned = [...offered.keys()]
    .map((name) => ({ name, at: findName(text, name) }))
    .filter(({ at }) => at !== -1)
    .sort((one, other) => one.at - other.at)
    .map(({ name }) => name)
  const names = mentioned.length === 0 && isRequired ? [...offered.keys()].slice(0, 1) : mentioned
  if (names.length === 0) return []
  const hints = parseHints(text)
  return names.map((name) => {
    const instance = sampleSchema(offered.get(name)?.parameters, hints)
    return { name, argumentsText: JSON.stringify(isJsonObject(instance) ? instance : {}) }
  })
}

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
