/** The page at `/demo`: a page of somebody's own, which shows what can be done with the widget on it. */
import './style.css'
import { readKey, rememberKey } from './key.ts'
import { addEvent, drawPage, type Page } from './page.ts'
import { readSettings } from './settings.ts'
import { answerTool, tools } from './tools.ts'

const page = drawPage()

/** The loader is in the document: this waits for it. */
function chat(): NonNullable<typeof window.ParleyChat> & { mount(options?: object): void; destroy(): void } {
  return window.ParleyChat as ReturnType<typeof chat>
}

function mount(key: string): void {
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

function readContext({ context }: Page): Record<string, unknown> {
  return { page: document.title, note: context.value }
}

/** At the cursor, as an editor does. */
function insert(field: HTMLTextAreaElement, text: string): void {
  field.setRangeText(text, field.selectionStart, field.selectionEnd, 'end')
}

/** Every event of the widget, as any page hears it. */
function logEvents(): void {
  const names = ['ready', 'opened', 'closed', 'unread', 'insert', 'tool-call', 'user-share', 'error']
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
      : 'That is no agent key: it begins with agnt_key-. A parent key (svc_…) belongs on servers only.'
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
  const key = readKey()
  page.key.value = key
  if (key !== '') page.keyForm.requestSubmit()
}

if (document.readyState === 'complete') start()
else window.addEventListener('load', start)
