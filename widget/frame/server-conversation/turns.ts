/** Starts turns on the server: sends messages and results of page tools, continues answers and stops them. */
import type { VisitorTurn } from '../../../src/visitors/schema.ts'
import { newUuid } from '../../values.ts'
import type { Chat, ChatParts } from '../chat/chat.ts'
import { toPageMessage, toPageText } from '../chat/to-messages.ts'
import { findStreaming } from '../conversation.ts'
import { ChatFailure, type Failure } from '../failure.ts'
import { createPageTools } from './page-tools.ts'
import type { ShownConversation } from './shown-conversation.ts'
import { findRunningTurn, findUnsent, listOpenCalls, toCall } from './view.ts'
import { isGone, type TurnFields, type VisitorClient } from './visitor-client.ts'

/** Maximum number of turns with results of page tools after a message. */
const MAX_TOOL_TURNS = 8

export interface Turns extends Pick<Chat, 'send' | 'retry' | 'stop'> {
  /** Continues an answer that was interrupted or stopped. */
  readonly continueAnswer: (turnId: string) => void
  readonly onItem: () => void
  readonly onTurnEnded: (turn: VisitorTurn) => void
  readonly onLeave: () => void
}

interface TurnsParts extends ChatParts {
  readonly getShown: () => ShownConversation
  /** @throws ChatFailure */
  readonly getClient: () => VisitorClient
}

export function createTurns({
  store,
  toolRunner,
  readContext,
  onFailure,
  getShown,
  getClient,
}: TurnsParts): Turns {
  const { dispatch } = store
  const pageTools = createPageTools(() => getShown().view, toolRunner)
  /** The turns that this tab has started; it runs their page tools. */
  const own = new Set<string>()
  let toolTurns = 0
  let isContinuing = false
  let isStopWanted = false
  /** Sends the results of page tools again. */
  let sendResultsAgain: (() => Promise<void>) | undefined

  function reportFailure(thrown: unknown): Failure {
    const failure: Failure = thrown instanceof ChatFailure ? thrown.failure : { code: 'server' }
    onFailure(failure)
    return failure
  }

  function showNotice(thrown: unknown): void {
    dispatch({ type: 'noticed', failure: reportFailure(thrown) })
  }

  function canStart(): boolean {
    const { blocked, opening, conversation, options } = store.get()
    if (blocked !== undefined || opening !== undefined || findStreaming(conversation) !== undefined) return false
    if (toPageMessage(options?.system, readContext()) !== null) return true
    showNotice(new ChatFailure({ code: 'context_too_large' }))
    return false
  }

  async function readFields(): Promise<TurnFields> {
    const tools = (await toolRunner.list()) as NonNullable<TurnFields['tools']>
    const { options } = store.get()
    const context = toPageText(options?.system, readContext())
    return {
      ...(tools.length > 0 && { tools: [...tools] }),
      ...(context !== undefined && { context }),
      ...(options?.model !== undefined && { model: options.model }),
    }
  }

  /** Sends a message. With the same `clientId`, the server accepts it only once. */
  async function deliver(clientId: string, text: string): Promise<void> {
    const shown = getShown()
    const left = shown.left()
    shown.view.apply({ type: 'sending', clientId, text, nowMs: Date.now() })
    try {
      const conversation = shown.id()
      const target = conversation === undefined ? {} : { conversation }
      const result = await getClient().send({ ...target, client_id: clientId, text, ...(await readFields()) })
      own.add(result.turn.id)
      if (left.aborted) return
      toolTurns = 0
      shown.addSent(result)
      if (isStopWanted) void cancel(result.turn.id)
    } catch (thrown) {
      if (left.aborted) return
      if (isGone(thrown) && shown.id() !== undefined) {
        // The conversation was deleted in another tab, so the message starts a new one.
        shown.startNew()
        return deliver(clientId, text)
      }
      shown.view.apply({ type: 'send-failed', clientId, failure: reportFailure(thrown) })
    } finally {
      isStopWanted = false
    }
  }

  /** Calls the page tools of an ended turn of this tab. Returns false if there are none to call. */
  function runTools(turn: VisitorTurn): boolean {
    const { view } = getShown()
    const calls = listOpenCalls(view.get()).filter(({ turn_id }) => turn_id === turn.id)
    if (turn.status !== 'completed' || calls.length === 0 || !own.has(turn.id)) return false
    if (toolTurns++ === MAX_TOOL_TURNS) {
      view.apply({ type: 'tools', tools: { turnId: turn.id, state: 'stopped' } })
      return false
    }
    const left = getShown().left()
    const running = pageTools.run(
      turn.id,
      calls.map((line) => ({ ...toCall(line), status: 'running' })),
    )
    void running.then((results) => {
      if (results === undefined || left.aborted) return
      const input = { turn: turn.id, client_id: newUuid(), results: [...results] }
      sendResultsAgain = async () => {
        view.apply({ type: 'tools', tools: { turnId: turn.id, state: 'running' } })
        try {
          const started = await getClient().sendToolResults({ ...input, ...(await readFields()) })
          own.add(started.turn.id)
          if (left.aborted) return
          sendResultsAgain = undefined
          view.apply({ type: 'turn', turn: started.turn })
          view.apply({ type: 'tools', tools: undefined })
          getShown().updateFeed()
        } catch (thrown) {
          if (left.aborted) return
          view.apply({ type: 'tools', tools: { turnId: turn.id, state: reportFailure(thrown) } })
        }
      }
      return sendResultsAgain()
    })
    return true
  }

  async function cancel(turnId: string): Promise<void> {
    const left = getShown().left()
    try {
      const turn = await getClient().cancel(turnId)
      if (!left.aborted) getShown().view.apply({ type: 'turn', turn })
    } catch (thrown) {
      if (!left.aborted) showNotice(thrown)
    }
  }

  function send(text: string): boolean {
    if (!canStart()) return false
    void deliver(newUuid(), text)
    return true
  }

  return {
    send,
    retry() {
      if (!canStart()) return
      const { view } = getShown()
      const unsent = findUnsent(view.get())
      const question = view.get().lines.findLast(({ author }) => author === 'visitor')
      if (unsent !== undefined) void deliver(unsent.id, unsent.text ?? '')
      else if (sendResultsAgain !== undefined) void sendResultsAgain()
      else if (question?.text !== undefined) send(question.text)
    },
    stop() {
      const { view } = getShown()
      const { tools } = view.get()
      const turn = findRunningTurn(view.get())
      if (tools?.state === 'running') {
        pageTools.stop()
        view.apply({ type: 'tools', tools: { ...tools, state: 'stopped' } })
      } else if (turn !== undefined) void cancel(turn.id)
      else isStopWanted = true
    },
    continueAnswer(turnId) {
      if (isContinuing || !canStart()) return
      isContinuing = true
      void continueTurn(turnId)
    },
    onItem: () => pageTools.expire((turnId) => own.has(turnId)),
    onTurnEnded(turn) {
      if (runTools(turn)) return
      if (turn.status !== 'cancelled') dispatch({ type: 'reply-completed' })
      const reply = store.get().conversation.entries.at(-1)
      if (turn.status === 'failed' && reply?.kind === 'reply' && reply.failure !== undefined)
        onFailure(reply.failure)
    },
    onLeave() {
      pageTools.leave()
      isStopWanted = isContinuing = false
      sendResultsAgain = undefined
    },
  }

  async function continueTurn(turnId: string): Promise<void> {
    const shown = getShown()
    const left = shown.left()
    try {
      const { turn } = await getClient().continueTurn(turnId, await readFields())
      own.add(turn.id)
      if (left.aborted) return
      toolTurns = 0
      shown.view.apply({ type: 'turn', turn })
      shown.updateFeed()
    } catch (thrown) {
      if (!left.aborted) showNotice(thrown)
    } finally {
      if (!left.aborted) isContinuing = false
    }
  }
}
