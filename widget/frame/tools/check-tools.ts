/** Checks which of the page's tools can be offered to the model. */
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { isRecord } from '../../values.ts'

/** The page adds this prefix to its tools' names. */
const PAGE_TOOL_PREFIX = 'postMessage_'
const MAX_TOOLS = 128
const MAX_SCHEMAS_LENGTH = 64 * 1024
const MAX_DESCRIPTION_LENGTH = 4096
/** Matches names of at most 64 characters, the server's limit. */
const name = /^postMessage_[A-Za-z0-9_-]{1,52}$/

interface CheckedTools {
  readonly tools: readonly Tool[]
  /** One sentence per dropped tool, for the page's developer. */
  readonly problems: readonly string[]
}

/**
 * Returns the tools that can be offered, without repeated names, and the reason why each of the others is
 * dropped.
 */
export function checkTools(offered: readonly unknown[]): CheckedTools {
  const good = new Map<string, Tool>()
  const problems: string[] = []
  let schemasLength = 0
  for (const [index, offer] of offered.entries()) {
    const length = isTool(offer) ? JSON.stringify(offer.inputSchema).length : 0
    const problem = findProblem(offer, good, schemasLength + length)
    if (problem === undefined) {
      schemasLength += length
      good.set((offer as Tool).name, offer as Tool)
    } else problems.push(`tools[${index}]: ${problem}`)
  }
  return { tools: [...good.values()], problems }
}

/** Returns the reason why the tool cannot be offered, or undefined if it can. */
function findProblem(
  tool: unknown,
  good: ReadonlyMap<string, Tool>,
  schemasLength: number,
): string | undefined {
  if (!isRecord(tool) || typeof tool.name !== 'string' || !name.test(tool.name))
    return 'the name must have 1 to 52 letters, digits, `_` and `-`'
  const { description = '' } = tool
  if (typeof description !== 'string' || description.length > MAX_DESCRIPTION_LENGTH)
    return 'the description must be a text of at most 4,096 characters'
  if (!isTool(tool)) return 'parameters must be a JSON Schema without cycles, and annotations an object'
  if (good.has(tool.name)) return 'another tool has the same name'
  if (good.size === MAX_TOOLS) return `at most ${MAX_TOOLS} tools are offered`
  return schemasLength > MAX_SCHEMAS_LENGTH
    ? 'the parameters of this tool and the tools before it exceed 64 KiB in total'
    : undefined
}

/** Renders a tool in the chat API's format. */
export function renderTool({ name, description, inputSchema }: Tool): object {
  const described = description === undefined ? {} : { description }
  return { type: 'function', function: { name, ...described, parameters: inputSchema } }
}

export function needsApproval({ annotations }: Tool): boolean {
  const { destructiveHint, requiresApproval } = (annotations ?? {}) as Record<string, unknown>
  return destructiveHint === true || requiresApproval === true
}

/** Returns the name that the visitor sees. */
export function titleOf(tool: Tool | undefined, called: string): string {
  const title = tool?.annotations?.title ?? tool?.title
  if (typeof title === 'string' && title.trim() !== '') return title.slice(0, 80)
  return called.startsWith(PAGE_TOOL_PREFIX) ? called.slice(PAGE_TOOL_PREFIX.length) : called
}

const MAX_PURPOSE = 160

/** Returns the first sentence of the tool's description, for the visitor; undefined if it has none. */
export function purposeOf({ description }: Tool): string | undefined {
  const [sentence = ''] = /^[\s\S]+?(?:[.!?。！？](?=\s|$)|[。！？]|$)/.exec((description ?? '').trim()) ?? []
  const text = sentence.replaceAll(/\s+/g, ' ').trim()
  if (text === '') return undefined
  return text.length > MAX_PURPOSE ? `${text.slice(0, MAX_PURPOSE - 1)}…` : text
}

const MAX_LABELS = 40

/** Returns the titles that the tool's schema gives to its arguments. */
export function labelsOf({ inputSchema }: Tool): Readonly<Record<string, string>> {
  const properties = Object.entries(inputSchema.properties ?? {}).slice(0, MAX_LABELS)
  return Object.fromEntries(
    properties.flatMap(([name, schema]) =>
      isRecord(schema) && typeof schema.title === 'string' && schema.title.trim() !== ''
        ? [[name, schema.title.slice(0, 80)]]
        : [],
    ),
  )
}

function isTool(tool: unknown): tool is Tool {
  if (!isRecord(tool) || typeof tool.name !== 'string' || !name.test(tool.name)) return false
  const { description, inputSchema, annotations } = tool
  const isDescribed =
    description === undefined ||
    (typeof description === 'string' && description.length <= MAX_DESCRIPTION_LENGTH)
  return isDescribed && isRecord(inputSchema) && (annotations === undefined || isRecord(annotations))
}
