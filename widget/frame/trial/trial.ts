/** Connects the frame of a trial to the console, which calls the model and answers tool calls (ADR 0063). */

import type { ChatChunk } from '../../../src/providers/chat-api.ts'
import { newId } from '../../values.ts'
import type { Store } from '../app-state.ts'
import { type ErrorResponse, toFailure } from '../chat/to-failure.ts'
import type { AgentSelf, ChatBody, Transport } from '../chat/transport.ts'
import { type Entry, findStreaming } from '../conversation.ts'
import { ChatFailure } from '../failure.ts'
import { breakOffAll } from '../history/stored-entries.ts'
import type { PageToolClient, ToolOutcome } from '../tools/mcp-client.ts'
import type { MockTool, TrialCommand, TrialEvent } from './messages.ts'

/** The parts of the chat that the console controls. */
interface TrialChat {
  readonly send: (text: string) => boolean
  readonly stop: () => void
  readonly startNew: () => void
}

export interface Trial {
  readonly transport: Transport
  readonly pageTools: PageToolClient
  /** Follows the conversation and the console's commands; must be called once. */
  readonly attach: (store: Store, chat: TrialChat) => void
  readonly connect: (port: MessagePort) => void
}

export function createTrial(): Trial {
  const { promise: started, resolve: start } = Promise.withResolvers<AgentSelf>()
  const answers = new Map<string, AnswerQueue>()
  const results = new Map<string, (outcome: ToolOutcome) => void>()
  let port: MessagePort | undefined
  let tools: readonly MockTool[] = []
  let control: (command: TrialCommand) => void = () => {}
  const post = (event: TrialEvent) => port?.postMessage(event)

  function receive(command: TrialCommand): void {
    if (command.type === 'start') start(command.agent)
    else if (command.type === 'tools') tools = command.tools
    else if (command.type === 'chunks') answers.get(command.id)?.push(command.chunks)
    else if (command.type === 'answered') answers.get(command.id)?.end(command.error)
    else if (command.type === 'tool-result') results.get(command.id)?.(command)
    control(command)
  }

  return {
    transport: createTransport(post, answers, started),
    pageTools: createMockTools(post, results, () => tools),
    attach(store, chat) {
      control = followConversation(post, store, chat)
    },
    connect(given) {
      port = given
      given.onmessage = ({ data }: MessageEvent<TrialCommand>) => receive(data)
    },
  }
}

type Post = (event: TrialEvent) => void

function createTransport(
  post: Post,
  answers: Map<string, AnswerQueue>,
  started: Promise<AgentSelf>,
): Transport {
  return {
    takesSystem: false,
    async *stream(body: ChatBody, signal: AbortSignal) {
      const id = newId()
      const answer = createQueue()
      const onAbort = () => answer.end(null)
      answers.set(id, answer)
      signal.addEventListener('abort', onAbort)
      let isWhole = false
      try {
        post({ type: 'chat', id, body })
        yield* answer.read()
        isWhole = true
      } finally {
        answers.delete(id)
        signal.removeEventListener('abort', onAbort)
        if (!isWhole) post({ type: 'chat-stopped', id })
      }
    },
    readAgent: () => started,
  }
}

interface AnswerQueue {
  readonly push: (chunks: readonly ChatChunk[]) => void
  readonly end: (error?: ErrorResponse | null) => void
  /** Yields the chunks until the answer is complete. @throws ChatFailure */
  readonly read: () => AsyncGenerator<readonly ChatChunk[]>
}

function createQueue(): AnswerQueue {
  const waiting: (readonly ChatChunk[])[] = []
  let ended: { readonly error: ErrorResponse | null | undefined } | undefined
  let wake: () => void = () => {}
  return {
    push(chunks) {
      waiting.push(chunks)
      wake()
    },
    end(error) {
      ended ??= { error }
      wake()
    },
    async *read() {
      let hasBegun = false
      for (;;) {
        for (let chunks = waiting.shift(); chunks !== undefined; chunks = waiting.shift()) {
          hasBegun = true
          yield chunks
        }
        if (ended?.error !== undefined) throw new ChatFailure(toFailure(ended.error ?? undefined, hasBegun))
        if (ended !== undefined) return
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

/** Offers the console's tools. A call waits for the tester without a time limit. */
function createMockTools(
  post: Post,
  results: Map<string, (outcome: ToolOutcome) => void>,
  listTools: () => readonly MockTool[],
): PageToolClient {
  return {
    start() {},
    receive() {},
    list: async () => listTools(),
    // Also accepts tools that the definition leaves to the client.
    find: (name) =>
      listTools().find((tool) => tool.name === name) ?? { name, inputSchema: { type: 'object' } },
    call(name, args, signal) {
      const id = newId()
      return new Promise((resolve) => {
        function settle({ isError, text }: ToolOutcome): void {
          signal.removeEventListener('abort', onAbort)
          results.delete(id)
          resolve({ isError, text })
        }
        function onAbort(): void {
          post({ type: 'tool-stopped', id })
          settle({ isError: true, text: 'The tester stopped the answer.' })
        }
        signal.addEventListener('abort', onAbort)
        results.set(id, settle)
        post({ type: 'tool-call', id, name, args })
      })
    },
  }
}

/** Reports the conversation to the console, and returns a function that runs the console's commands. */
function followConversation(post: Post, store: Store, chat: TrialChat): (command: TrialCommand) => void {
  let reported: readonly Entry[] = []
  let isCommanded = false
  let restored: readonly Entry[] | undefined

  function report(): void {
    const { conversation, home } = store.get()
    if (home === 'browser' && restored !== undefined) queueMicrotask(restore)
    const { entries } = conversation
    if (entries === reported) return
    const known = new Set(reported.map(({ id }) => id))
    const questions = entries.filter(({ kind }) => kind === 'user')
    const position = questions.findIndex(({ id }) => !known.has(id))
    const asked = questions[position]
    const isStreaming = findStreaming(conversation) !== undefined
    const isSame = entries.length === reported.length && entries.every(({ id }) => known.has(id))
    if (isStreaming && isSame) return
    reported = entries
    if (asked?.kind === 'user' && !isCommanded) post({ type: 'asked', text: asked.text, position })
    post({ type: 'entries', entries })
  }

  /** Shows the conversation of an earlier frame, after the frame knows where conversations are stored. */
  function restore(): void {
    const entries = restored
    restored = undefined
    if (entries !== undefined && entries.length > 0) command(() => replace(breakOffAll(entries)))
  }

  function replace(entries: readonly Entry[]): void {
    store.dispatch({ type: 'replaced', entries })
  }

  function command(act: () => void): void {
    isCommanded = true
    act()
    isCommanded = false
  }

  function ask(text: string, position: number): void {
    chat.stop()
    const { entries } = store.get().conversation
    const questions = entries.filter(({ kind }) => kind === 'user')
    const next = questions[position]
    if (next !== undefined) replace(entries.slice(0, entries.indexOf(next)))
    chat.send(text)
  }

  store.subscribe(report)
  return (given) => {
    if (given.type === 'start') restored = given.entries
    else if (given.type === 'agent') store.dispatch({ type: 'agent', agent: given.agent })
    else if (given.type === 'ask') command(() => ask(given.text, given.position))
    else if (given.type === 'stop') chat.stop()
    else if (given.type === 'clear') command(chat.startNew)
  }
}
