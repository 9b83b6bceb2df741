/** Sends messages and the results of page tools to the server, continues answers and stops them. */
import type { SendResult, StartedResult, VisitorTurn } from '../../../src/visitors/schema.ts'
import { newUuid } from '../../values.ts'
import { type Attachment, toParts } from '../attachments/attachments.ts'
import type { Chat, ChatParts } from '../chat/chat.ts'
import { toPageMessage, toPageText } from '../chat/to-messages.ts'
import { findStreaming } from '../conversation.ts'
import { ChatFailure, type Failure, toChatFailure } from '../failure.ts'
import type { UnsentMessages } from '../unsent/unsent-messages.ts'
import type { UnsentMessage } from '../unsent/unsent-store.ts'
import { createMessageChanges } from './message-changes.ts'
import { Outbox } from './outbox.ts'
import { type CallResult, createPageTools, type PageTools } from './page-tools.ts'
import { toCall } from './render-view.ts'
import type { ShownConversation } from './shown-conversation.ts'
import { TurnRepeater } from './turn-repeater.ts'
import { findRunningTurn, isRunning, listOpenCalls, listUnsent, type Replaces } from './view.ts'
import { isGone, isWrongMode, type TurnFields, type VisitorClient } from './visitor-client.ts'

/** Maximum number of times that page tools are called after a message of the visitor. */
const MAX_TOOL_TURNS = 8
/** Messages older than this are sent only when the visitor confirms it, in milliseconds (24 hours). */
const RESEND_MS = 24 * 60 * 60 * 1000

interface TurnsParts extends ChatParts {
  readonly getShown: () => ShownConversation
  readonly unsent: UnsentMessages
  /** @throws ChatFailure */
  readonly getClient: () => VisitorClient
}

interface Message {
  readonly clientId: string
  readonly text: string
  readonly files: readonly Attachment[]
  readonly replaces?: Replaces
  /** When the visitor wrote the message, in Unix milliseconds; by default, now. */
  readonly atMs?: number
}

export class Turns implements Pick<Chat, 'send' | 'retry' | 'stop'> {
  readonly changes: ReturnType<typeof createMessageChanges>
  private readonly parts: TurnsParts
  private readonly pageTools: PageTools
  /** The turns that this tab has started; it runs their page tools. */
  private readonly own = new Set<string>()
  private toolTurns = 0
  private isContinuing = false
  private readonly outbox: Outbox
  private readonly repeater: TurnRepeater
  private isStopWanted = false
  /** Sends the page tools' results again; undefined once the server has accepted them. */
  private sendResultsAgain: (() => Promise<void>) | undefined

  constructor(parts: TurnsParts) {
    this.parts = parts
    this.pageTools = createPageTools(() => this.shown.view, parts.toolRunner)
    this.changes = createMessageChanges({
      ...parts,
      canStart: () => this.canStart(),
      send: (change) => this.deliver({ clientId: newUuid(), ...change }),
      showNotice: (thrown) => this.showNotice(thrown),
      readReply(id) {
        const entry = parts.store.get().conversation.entries.find((one) => one.id === id)
        return entry?.kind === 'reply' ? entry : undefined
      },
    })
    this.repeater = new TurnRepeater({ ...parts, regenerate: () => this.changes.regenerate() })
    this.outbox = new Outbox(() => this.shown.view.get().mode !== 'model')
  }

  private get shown(): ShownConversation {
    return this.parts.getShown()
  }

  send(text: string, files: readonly Attachment[] = []): boolean {
    const canSend = this.canStart()
    if (!canSend) return false
    this.repeater.reset()
    this.deliver({ clientId: newUuid(), text, files })
    return true
  }

  /** Sends unsent messages or results again, or requests another answer to the last message. */
  retry(): void {
    if (!this.canStart()) return
    this.repeater.reset()
    const view = this.shown.view.get()
    const unsent = listUnsent(view)
    for (const { id: clientId, text = '', files = [] } of unsent) this.deliver({ clientId, text, files })
    if (unsent.length > 0) return
    if (this.sendResultsAgain !== undefined) void this.sendResultsAgain()
    else this.changes.regenerate()
  }

  /**
   * Shows a message that was not sent before a reload. Sends it if it was waiting, because the server accepts it only
   * once.
   */
  restore({ failure, ...message }: UnsentMessage): void {
    const isWaiting = failure === undefined || (failure.code === 'offline' && navigator.onLine)
    if (isWaiting && message.atMs > Date.now() - RESEND_MS) this.deliver(message)
    else {
      this.show(message)
      const reason = failure ?? { code: 'unreachable' }
      this.shown.view.apply({ type: 'send-failed', clientId: message.clientId, failure: reason })
    }
  }

  stop(): void {
    if (this.repeater.stop()) return
    const { view } = this.shown
    const { tools } = view.get()
    const turn = findRunningTurn(view.get())
    if (tools?.state === 'running') {
      this.pageTools.stop()
      view.apply({ type: 'tools', tools: { ...tools, state: 'stopped' } })
    } else if (turn === undefined) this.isStopWanted = true
    else void this.cancel(turn.id)
  }

  /** Continues an answer that was interrupted or stopped. */
  continueAnswer(turnId: string): void {
    if (this.isContinuing || !this.canStart()) return
    this.isContinuing = true
    void this.continueTurn(turnId)
  }

  onItem(): void {
    this.pageTools.expire((turnId) => this.own.has(turnId))
  }

  /** Ends the page tools, because the server no longer accepts their results. */
  onHandover(): void {
    this.sendResultsAgain = undefined
    this.pageTools.cancel()
    this.shown.updateFeed()
  }

  /** Sends waiting messages again immediately. */
  wake(): void {
    this.outbox.wake()
  }

  /** Asks for a person. Does nothing if the model no longer answers. */
  async requestPerson(): Promise<void> {
    const { shown } = this
    const left = shown.left()
    const id = shown.id()
    if (id === undefined) return
    try {
      await this.parts.getClient().requestPerson(id)
      if (left.aborted) return
      shown.view.apply({ type: 'person-requested' })
      this.onHandover()
    } catch (thrown) {
      if (!left.aborted && !isWrongMode(thrown)) this.showNotice(thrown)
    }
  }

  onTurnEnding(turn: VisitorTurn): void {
    if (this.own.has(turn.id)) this.repeater.repeat(turn)
  }

  onTurnEnded(turn: VisitorTurn): void {
    const { store, onFailure } = this.parts
    if (this.repeater.isRepeating(turn) || this.runTools(turn)) return
    if (turn.status !== 'cancelled') store.dispatch({ type: 'reply-completed' })
    const reply = store.get().conversation.entries.at(-1)
    if (turn.status === 'failed' && reply?.kind === 'reply' && reply.failure !== undefined)
      onFailure(reply.failure)
  }

  onLeave(): void {
    this.pageTools.leave()
    this.repeater.reset()
    this.isStopWanted = false
    this.isContinuing = false
    this.sendResultsAgain = undefined
    this.outbox.clear()
  }

  private reportFailure(thrown: unknown): Failure {
    const { failure } = toChatFailure(thrown)
    this.parts.onFailure(failure)
    return failure
  }

  private showNotice(thrown: unknown): void {
    this.parts.store.dispatch({ type: 'noticed', failure: this.reportFailure(thrown) })
  }

  private canStart(): boolean {
    const { store, readContext } = this.parts
    const { blocked, opening, conversation, options } = store.get()
    if (blocked !== undefined || opening !== undefined || findStreaming(conversation) !== undefined)
      return false
    if (toPageMessage(options?.system, readContext()) !== null) return true
    this.showNotice(new ChatFailure({ code: 'context_too_large' }))
    return false
  }

  private async readFields(): Promise<TurnFields> {
    const { store, toolRunner, readContext } = this.parts
    const tools = (await toolRunner.list()) as NonNullable<TurnFields['tools']>
    const { options } = store.get()
    const context = toPageText(options?.system, readContext())
    return {
      ...(tools.length > 0 && { tools: [...tools] }),
      ...(context !== undefined && { context }),
      ...(options?.model !== undefined && { model: options.model }),
    }
  }

  private show({ clientId, text, files, replaces, atMs = Date.now() }: Message): void {
    this.shown.view.apply({ type: 'sending', clientId, text, files, replaces, nowMs: atMs })
  }

  /** Sends a message. With the same `clientId`, the server accepts it only once. */
  private deliver(message: Message): void {
    const { clientId, replaces } = message
    const { shown } = this
    const left = shown.left()
    this.show(message)
    this.outbox.add({
      send: () => this.sendOnce(message, left),
      onFailure: (thrown, isLast) => {
        if (left.aborted) return
        if (replaces !== undefined) return this.undo(message, thrown)
        const failure = isLast ? this.reportFailure(thrown) : 'delayed'
        shown.view.apply({ type: 'send-failed', clientId, failure })
      },
    })
  }

  /** Shows what a message should have replaced, and puts an edited text into the input. */
  private undo({ clientId, text, replaces }: Message, thrown: unknown): void {
    this.shown.view.apply({ type: 'dropped', clientId })
    if (replaces?.how === 'edited') this.parts.store.dispatch({ type: 'prefill', text })
    this.showNotice(thrown)
  }

  private async request({ clientId, text, files, replaces }: Message): Promise<SendResult> {
    const conversation = this.shown.id()
    const client = this.parts.getClient()
    const fields = { client_id: clientId, ...(await this.readFields()) }
    if (replaces?.how === 'regenerated') return client.regenerate({ turn: replaces.turn, ...fields })
    return client.send({
      ...fields,
      ...(conversation !== undefined && { conversation }),
      ...(files.length > 0 && { attachments: toParts(files) }),
      ...(replaces !== undefined && { replaces: replaces.turn }),
      text,
    })
  }

  private async sendOnce(message: Message, left: AbortSignal): Promise<void> {
    const { shown } = this
    const conversation = shown.id()
    try {
      const result = await this.request(message)
      if (result.turn !== null) this.own.add(result.turn.id)
      this.parts.unsent.remove(message.clientId)
      if (left.aborted) return
      this.toolTurns = 0
      shown.addSent(result)
      this.runLateTools(result.turn)
      if (this.isStopWanted && result.turn !== null) void this.cancel(result.turn.id)
      this.isStopWanted = false
    } catch (thrown) {
      if (left.aborted) return
      this.isStopWanted = false
      if (!isGone(thrown) || conversation === undefined) throw thrown
      // The conversation was deleted in another tab, so the message starts a new one.
      shown.replaceGone()
      const { replaces: _replaces, ...sent } = message
      this.deliver(sent)
    }
  }

  /** Runs the page tools that a completed turn of this tab calls. Returns false if it runs none. */
  private runTools({ id: turnId, status }: VisitorTurn): boolean {
    const { view } = this.shown
    const calls = listOpenCalls(view.get()).filter(({ turn_id }) => turn_id === turnId)
    if (status !== 'completed' || calls.length === 0 || !this.own.has(turnId)) return false
    if (view.get().mode !== 'model') {
      this.pageTools.cancel()
      return false
    }
    this.toolTurns += 1
    if (this.toolTurns > MAX_TOOL_TURNS) {
      view.apply({ type: 'tools', tools: { turnId, state: 'stopped' } })
      return false
    }
    const running = calls.map((line) => ({ ...toCall(line), status: 'running' as const }))
    void this.pageTools.run(turnId, running).then((results) => {
      if (results === undefined) return
      const clientId = newUuid()
      this.sendResultsAgain = () => this.sendResults(turnId, clientId, results)
      return this.sendResultsAgain()
    })
    return true
  }

  /** Runs the page tools of a turn whose end was reported before the response that started it. */
  private runLateTools(started: VisitorTurn | null): void {
    const turn = started && this.shown.view.get().turns.get(started.id)
    if (turn && !isRunning(turn) && !this.repeater.repeat(turn)) this.runTools(turn)
  }

  private async sendResults(turnId: string, clientId: string, results: readonly CallResult[]): Promise<void> {
    const { view } = this.shown
    view.apply({ type: 'tools', tools: { turnId, state: 'running' } })
    const input = { turn: turnId, client_id: clientId, results: [...results] }
    try {
      await this.startTurn((fields) => this.parts.getClient().sendToolResults({ ...input, ...fields }))
      this.sendResultsAgain = undefined
    } catch (thrown) {
      const tools = isWrongMode(thrown) ? undefined : { turnId, state: this.reportFailure(thrown) }
      view.apply({ type: 'tools', tools })
    }
  }

  private async continueTurn(turnId: string): Promise<void> {
    this.toolTurns = 0
    try {
      await this.startTurn((fields) => this.parts.getClient().continueTurn(turnId, fields))
    } catch (thrown) {
      if (!isWrongMode(thrown)) this.showNotice(thrown)
    }
    this.isContinuing = false
  }

  /**
   * Starts a turn and shows it. Shows nothing if the visitor has left the conversation before the response.
   */
  private async startTurn(start: (fields: TurnFields) => Promise<StartedResult>): Promise<void> {
    const { shown } = this
    const left = shown.left()
    try {
      const { turn } = await start(await this.readFields())
      this.own.add(turn.id)
      if (left.aborted) return
      shown.view.apply({ type: 'turn', turn })
      shown.view.apply({ type: 'tools', tools: undefined })
      shown.updateFeed()
      this.runLateTools(turn)
    } catch (thrown) {
      if (!left.aborted) throw thrown
    }
  }

  private async cancel(turnId: string): Promise<void> {
    const { shown } = this
    const left = shown.left()
    try {
      const turn = await this.parts.getClient().cancel(turnId)
      if (!left.aborted) shown.view.apply({ type: 'turn', turn })
    } catch (thrown) {
      if (!left.aborted) this.showNotice(thrown)
    }
  }
}
