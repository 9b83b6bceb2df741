/** Shows the chat widget on a React page. Run npx vite examples/react and open it with ?key=<your agent key>. */
import { type PageTool, ParleyChat, useParleyChat } from 'parley/react'
import { StrictMode, useMemo, useState } from 'react'
import { createRoot } from 'react-dom/client'

const server = 'http://127.0.0.1:3000'
const apiKey = new URLSearchParams(location.search).get('key') ?? 'agnt_key-…'

const tools: PageTool[] = [
  {
    type: 'function',
    function: {
      name: 'show_room',
      description: 'Shows a room to the visitor.',
      parameters: { type: 'object', properties: { room: { type: 'string' } }, required: ['room'] },
    },
  },
]

/** Shows that useParleyChat also works outside <ParleyChat>. */
function AskButton() {
  const { isReady, isOpen, hasUnread, toggle } = useParleyChat()
  const text = isOpen ? 'Close the chat' : 'Ask the concierge'
  return (
    <button type="button" disabled={!isReady} onClick={toggle}>
      {text} {hasUnread && '•'}
    </button>
  )
}

function App() {
  const [room, setRoom] = useState('none')
  const [wishes, setWishes] = useState('')
  // The widget compares the context by reference, so useMemo must return the same object until the content changes.
  const context = useMemo(() => ({ page: 'rooms', room }), [room])
  return (
    <main>
      <h1>Harbour View Hotel</h1>
      <p>Selected room: {room}</p>
      <textarea
        aria-label="Your request"
        value={wishes}
        onChange={(event) => setWishes(event.target.value)}
      />
      <AskButton />
      <ParleyChat
        apiKey={apiKey}
        widgetUrl={server}
        context={context}
        tools={tools}
        onToolCall={(_tool, args, sendResult) => {
          setRoom(String(args.room))
          sendResult({ shown: args.room })
        }}
        onInsert={({ text }) => setWishes((before) => before + text)}
      />
    </main>
  )
}

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
