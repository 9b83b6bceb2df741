/** Runs the page at `/demo`, which demonstrates the widget's API. */
import './style.css'
import type { PageTool } from '../options.ts'
import { type Agent, addEvent, drawPage, type Page, readSettings, showAgents } from './page.ts'

const page = drawPage()

/**
 * Returns the widget's API; must be called after the window's `load` event, when the loader script has run.
 */
function chat(): NonNullable<typeof window.ParleyChat> & { mount(options?: object): void; destroy(): void } {
  return window.ParleyChat as ReturnType<typeof chat>
}

function mount(key: string): void {
  void noteMockModel(key)
  chat().destroy()
  chat().mount({
    ...readSettings(page.settings),
    apiKey: key,
    context: readContext(page),
    tools,
    onInsert: ({ text }) => insert(page.note, text),
    onToolCall: (tool, args, sendResult) => sendResult(answerTool(tool, args, page)),
    onUserShare: ({ text }) => {
      page.shared.textContent = text
    },
  })
}

/** States that the agent uses the mock model. The widget reports errors, so this ignores them. */
async function noteMockModel(key: string): Promise<void> {
  page.mockNote.hidden = true
  try {
    const answer = await fetch('/v1/agents/me', { headers: { Authorization: `Bearer ${key}` } })
    const { model } = (await answer.json()) as { model?: string }
    page.mockNote.hidden = !/^mock(?:\/|$)/.test(model ?? '')
  } catch {}
}

function readContext({ context }: Page): Record<string, unknown> {
  return { page: document.title, note: context.value }
}

function insert(field: HTMLTextAreaElement, text: string): void {
  field.setRangeText(text, field.selectionStart, field.selectionEnd, 'end')
}

/** Shows these events on the page when the widget dispatches them on the document. */
function logEvents(): void {
  const names = [
    'ready',
    'opened',
    'closed',
    'message',
    'mode',
    'unread',
    'insert',
    'tool-call',
    'user-share',
    'error',
  ]
  for (const name of names) {
    document.addEventListener(`parley-chat-${name}`, (event) => {
      const { detail } = event as CustomEvent
      addEvent(
        page,
        `parley-chat-${name}`,
        detail instanceof Error ? `${detail}` : JSON.stringify(detail ?? null),
      )
    })
  }
}

function start(): void {
  logEvents()
  page.keyForm.addEventListener('submit', (event) => {
    event.preventDefault()
    const key = page.key.value.trim()
    const isAgentKey = key.startsWith('agnt_key-')
    page.keyProblem.textContent = isAgentKey
      ? ''
      : 'Enter an agent key, which starts with agnt_key-. Keep parent keys (svc_…) on your server.'
    if (!isAgentKey) return
    rememberKey(key)
    mount(key)
  })
  page.settings.addEventListener('change', () => chat().configure?.(readSettings(page.settings)))
  page.context.addEventListener('change', () => chat().setContext?.(readContext(page)))
  for (const name of ['open', 'close', 'toggle', 'destroy'] as const) {
    page.actions[name].addEventListener('click', () => chat()[name]?.())
  }
  page.actions.mount.addEventListener('click', () => page.keyForm.requestSubmit())
  page.agents.addEventListener('change', () => mount(page.agents.value))
  const key = readKey()
  page.key.value = key
  if (key !== '') page.keyForm.requestSubmit()
  if ('session' in document.documentElement.dataset) void offerAgents(key)
}

/** Offers the console session's agents. If no key is in use, starts the chat with the first agent. */
async function offerAgents(usedKey: string): Promise<void> {
  const agents = await listAgents()
  const [first] = agents
  if (first === undefined) return
  showAgents(page, agents, usedKey || first.agent_key)
  if (usedKey === '') mount(first.agent_key)
}

/** Returns the console session's agents, or an empty list if the session has ended. */
async function listAgents(): Promise<readonly Agent[]> {
  const input = encodeURIComponent(JSON.stringify({ json: { limit: 100 } }))
  const answer = await fetch(`/trpc/agents.list?input=${input}`, {
    headers: { 'X-Requested-With': 'parley' },
  })
  if (!answer.ok) return []
  const { result } = (await answer.json()) as { result: { data: { json: { data: readonly Agent[] } } } }
  return result.data.json.data
}

const name = 'parley-demo-key'

/**
 * Returns the key in `?key=` and removes it from the address. Without it, returns the stored key or an empty
 * string.
 */
function readKey(): string {
  const address = new URL(location.href)
  const given = address.searchParams.get('key')
  if (given === null) return recall()
  address.searchParams.delete('key')
  history.replaceState(null, '', address)
  return given
}

/** Ignores errors, because the user can enter the key again if the browser blocks storage. */
function rememberKey(key: string): void {
  try {
    sessionStorage.setItem(name, key)
  } catch {}
}

function recall(): string {
  try {
    return sessionStorage.getItem(name) ?? ''
  } catch {
    return ''
  }
}

const empty = { type: 'object', properties: {} }
const color = { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] }

const tools: readonly PageTool[] = [
  {
    type: 'function',
    function: {
      name: 'read_note',
      description: 'Reads the note on the page.',
      parameters: empty,
      annotations: { readOnlyHint: true },
    },
  },
  {
    type: 'function',
    function: {
      name: 'set_color',
      description: 'Sets the color of the page heading to a CSS color.',
      parameters: color,
    },
  },
  {
    type: 'function',
    function: {
      name: 'clear_note',
      description: 'Permanently clears the note on the page.',
      parameters: empty,
      annotations: { destructiveHint: true },
    },
  },
]

function answerTool(tool: string, args: Record<string, unknown>, page: Page): unknown {
  if (tool === 'read_note') return { note: page.note.value }
  if (tool === 'set_color') {
    page.heading.style.color = String(args.color)
    return { color: page.heading.style.color }
  }
  page.note.value = ''
  return { isCleared: true }
}

if (document.readyState === 'complete') start()
else window.addEventListener('load', start)
