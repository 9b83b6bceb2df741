/** Implements the tools of the test MCP servers. */
import { setTimeout as wait } from 'node:timers/promises'
import type { CallToolResult } from '@modelcontextprotocol/client'

interface Tool {
  readonly description?: string
  readonly inputSchema: { type: 'object'; [keyword: string]: unknown }
  run(args: Record<string, unknown>, signal: AbortSignal): CallToolResult | Promise<CallToolResult>
}

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })
const anything = { type: 'object' } as const

/** Names of the tools that were called and of the calls that were cancelled. */
export const seen = { calls: [] as string[], cancelled: [] as string[] }

export const tools: Record<string, Tool> = {
  echo: {
    description: 'Repeats the text.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    run: ({ text: said }) => text(`echo: ${said}`),
  },
  'dotted.name': { inputSchema: anything, run: () => text('dotted') },
  broken: { inputSchema: { type: 'object', properties: { a: { type: 'nonsense' } } }, run: () => text('') },
  wait: {
    inputSchema: anything,
    async run(_args, signal) {
      await wait(60_000, undefined, { signal }).catch(() => seen.cancelled.push('wait'))
      return text('waited')
    },
  },
  fail: {
    inputSchema: anything,
    run: () => ({ content: [{ type: 'text', text: 'no such order' }], isError: true }),
  },
  big: { inputSchema: anything, run: () => text('b'.repeat(1024 * 1024)) },
  huge: { inputSchema: anything, run: () => text('h'.repeat(5 * 1024 * 1024)) },
  mixed: {
    inputSchema: anything,
    run: () => ({
      content: [
        { type: 'text', text: 'one' },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        { type: 'resource_link', uri: 'file:///a.txt', name: 'a' },
        { type: 'resource', resource: { uri: 'file:///b.txt', text: 'two' } },
        { type: 'resource', resource: { uri: 'file:///c.bin', blob: 'AAAA' } },
      ],
    }),
  },
  data: { inputSchema: anything, run: () => ({ content: [], structuredContent: { degrees: 7 } }) },
  environment: { inputSchema: anything, run: () => text(JSON.stringify(process.env)) },
  seen: { inputSchema: anything, run: () => text(JSON.stringify(seen)) },
  die: { inputSchema: anything, run: () => process.exit(1) },
}

export async function callTool(
  name: string,
  args: Record<string, unknown>,
  signal: AbortSignal,
): Promise<CallToolResult> {
  seen.calls.push(name)
  const tool = tools[name]
  if (tool === undefined) throw new Error(`there is no tool ${name}`)
  return tool.run(args, signal)
}

/** Returns one of two pages of the tool list. */
export function listPage(cursor: string | undefined) {
  const all = Object.entries(tools).map(([name, { description, inputSchema }]) => ({
    name,
    description,
    inputSchema,
  }))
  const half = Math.ceil(all.length / 2)
  return cursor === undefined
    ? { tools: all.slice(0, half), nextCursor: 'second' }
    : { tools: all.slice(half) }
}
