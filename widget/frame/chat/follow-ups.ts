/** Asks the model after each answer which questions the visitor could ask next. */
import { isJsonObject } from '../../../src/lib/formats/json.ts'
import type { AppState, Store } from '../app-state.ts'
import { type Entry, type Reply, textOf } from '../conversation.ts'
import type { ChatBody, ChatMessage, Transport } from './transport.ts'

const MAX_QUESTIONS = 3
/** Maximum length of a question, in UTF-16 code units; longer ones are dropped. */
const MAX_QUESTION_LENGTH = 200
/** Maximum number of messages and replies to send, which limits the cost of each request. */
const MAX_ENTRIES = 6
const TIMEOUT_MS = 30_000

export interface FollowUps {
  /** Cancels the running request, and uses this transport from now on. */
  readonly setTransport: (transport: Transport | undefined) => void
}

/** Suggests questions only for answers that arrive while the visitor sees the window. */
export function createFollowUps(store: Store): FollowUps {
  let transport: Transport | undefined
  let running = new AbortController()
  /** The reply that is being written. */
  let awaited: string | undefined

  async function ask(reply: Reply, from: Transport): Promise<void> {
    const { signal } = running
    try {
      const body = renderBody(store.get())
      const text = await readText(from, body, AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]))
      const questions = parseQuestions(text)
      if (signal.aborted || questions.length === 0) return
      store.dispatch({ type: 'follow-ups', followUps: { replyId: reply.id, questions } })
    } catch {
      // The answer is complete without suggestions.
    }
  }

  function cancel(): void {
    running.abort()
    running = new AbortController()
  }

  store.subscribe(() => {
    const last = store.get().conversation.entries.at(-1)
    if (last?.kind === 'reply' && last.status === 'streaming') {
      if (last.id !== awaited) cancel()
      awaited = last.id
    } else if (awaited !== undefined) {
      const isEnded = last?.kind === 'reply' && last.id === awaited
      awaited = undefined
      if (isEnded && transport !== undefined && isWanted(store.get(), last)) void ask(last, transport)
    }
  })

  return {
    setTransport(next) {
      cancel()
      transport = next
    },
  }
}

function isWanted({ agent, isOpen }: AppState, reply: Reply): boolean {
  const isWhole = reply.status === 'done' && reply.incomplete === undefined && textOf(reply) !== ''
  return agent?.followUps === true && isOpen && !document.hidden && isWhole
}

const REQUEST =
  'Suggest three short questions that I could ask you next. Write them from my point of view, in the ' +
  'language of my messages. Answer only with JSON: {"questions": ["…", "…", "…"]}'

const questionsSchema = {
  type: 'object',
  properties: {
    questions: {
      type: 'array',
      items: { type: 'string' },
      minItems: MAX_QUESTIONS,
      maxItems: MAX_QUESTIONS,
    },
  },
  required: ['questions'],
  additionalProperties: false,
}

function renderBody({ conversation, agent, options }: AppState): ChatBody {
  const recent = conversation.entries.slice(-MAX_ENTRIES).flatMap(renderEntry)
  const start = recent.findIndex(({ role }) => role === 'user')
  return {
    ...(options?.model === undefined ? {} : { model: options.model }),
    messages: [...recent.slice(Math.max(0, start)), { role: 'user', content: REQUEST }],
    response_format: { type: 'json_schema', json_schema: { name: 'follow_ups', schema: questionsSchema } },
    // Providers reject the field in requests without tools.
    ...((agent?.tools?.length ?? 0) > 0 && { tool_choice: 'none' as const }),
    store: false,
  }
}

/** Omits tool calls, because the request offers no tools. */
function renderEntry(entry: Entry): ChatMessage[] {
  if (entry.kind === 'user') return [{ role: 'user', content: entry.text }]
  if (entry.kind === 'note') return []
  const content = entry.kind === 'person' ? entry.text : textOf(entry)
  return content === '' ? [] : [{ role: 'assistant', content }]
}

async function readText(transport: Transport, body: ChatBody, signal: AbortSignal): Promise<string> {
  let text = ''
  for await (const chunks of transport.stream(body, signal))
    for (const { choices } of chunks) text += choices[0]?.delta.content ?? ''
  return text
}

/** Returns no questions unless the text contains a JSON object with a list of them. */
function parseQuestions(text: string): readonly string[] {
  const parsed: unknown = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1))
  const listed = isJsonObject(parsed) && Array.isArray(parsed.questions) ? parsed.questions : []
  const questions = listed
    .filter((one): one is string => typeof one === 'string')
    .map((one) => one.trim())
    .filter((one) => one !== '' && one.length <= MAX_QUESTION_LENGTH)
  return [...new Set(questions)].slice(0, MAX_QUESTIONS)
}
