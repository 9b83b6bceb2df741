/** Renders the chat components that a test passes to `show`. */
import { ParleyChat, type ParleyChatHandle, type ParleyChatProps, useParleyChat } from 'parley/react'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

/** The props of each component to render, and whether to use React's strict mode. */
interface Shown {
  readonly all: readonly ParleyChatProps[]
  readonly isStrict?: boolean
}

const root = createRoot(document.getElementById('root') as HTMLElement)
const names = ['onReady', 'onOpen', 'onClose', 'onInsert', 'onUserShare', 'onError'] as const
const heard: [string, unknown][] = []

/** Shows the hook's state outside the chat component. */
function Status() {
  const chat = useParleyChat()
  Object.assign(globalThis, { chat })
  return <output>{describe(chat)}</output>
}

function describe({ isReady, isOpen, hasUnread, iframe }: ParleyChatHandle): string {
  return JSON.stringify({ isReady, isOpen, hasUnread, hasFrame: iframe !== null })
}

function withCallbacks(props: ParleyChatProps, at: number): ParleyChatProps {
  const note = (name: string) => (value?: unknown) => {
    const { code } = (value ?? {}) as { code?: string }
    heard.push([`${name}${at === 0 ? '' : at}`, code ?? value])
  }
  // Creates new functions on each render, as in real pages.
  return { ...Object.fromEntries(names.map((name) => [name, note(name)])), ...props }
}

function show({ all, isStrict = false }: Shown): void {
  const widgets = all.map((props, at) => <ParleyChat key={String(at)} {...withCallbacks(props, at)} />)
  const page = (
    <>
      <Status />
      {widgets}
    </>
  )
  root.render(isStrict ? <StrictMode>{page}</StrictMode> : page)
}

/** Creates a tool callback that returns the call's arguments and `word`. */
const echo = (word: string): ParleyChatProps['onToolCall'] => {
  return async (tool, args, sendResult) => sendResult({ tool, args, word })
}

Object.assign(globalThis, { show, heard, echo })
