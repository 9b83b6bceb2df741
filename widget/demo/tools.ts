/** The tools this page has for the agent. */
import type { PageTool } from '../options.ts'
import type { Page } from './page.ts'

const empty = { type: 'object', properties: {} }
const color = { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] }

export const tools: readonly PageTool[] = [
  {
    type: 'function',
    function: {
      name: 'read_note',
      description: 'Reads the note of the page.',
      parameters: empty,
      annotations: { readOnlyHint: true },
    },
  },
  {
    type: 'function',
    function: {
      name: 'set_color',
      description: 'Puts a color of CSS on the heading of the page.',
      parameters: color,
    },
  },
  {
    type: 'function',
    function: {
      name: 'clear_note',
      description: 'Empties the note of the page for good.',
      parameters: empty,
      annotations: { destructiveHint: true },
    },
  },
]

/** What the assistant is answered. */
export function answerTool(tool: string, args: Record<string, unknown>, page: Page): unknown {
  if (tool === 'read_note') return { note: page.note.value }
  if (tool === 'set_color') {
    page.heading.style.color = String(args.color)
    return { color: page.heading.style.color }
  }
  page.note.value = ''
  return { isCleared: true }
}
