/** Stores this tab's messages that the server has not confirmed, and restores them after a reload. */
import type { Line, View } from '../server-conversation/view.ts'
import { claim } from './claim.ts'
import type { UnsentMessage, UnsentStore } from './unsent-store.ts'

interface Own {
  readonly line: Line
  readonly conversation: string
  /** Lets another tab send the message. */
  readonly release: () => void
}

export class UnsentMessages {
  private readonly store: UnsentStore
  private readonly own = new Map<string, Own>()
  /** Ends the claims of messages that wait for the view, by client id. */
  private readonly claimed = new Map<string, () => void>()

  constructor(store: UnsentStore) {
    this.store = store
  }

  /** Stores the view's unsent messages, and removes those that were sent or dropped. */
  follow(view: View, conversation: string): void {
    // A change of earlier messages that fails is undone, and its text is put into the input.
    const lines = view.lines.filter(
      ({ sending, replaces }) => sending !== undefined && replaces === undefined,
    )
    const unsent = new Set(lines.map(({ id }) => id))
    for (const id of this.own.keys()) if (!unsent.has(id)) this.remove(id)
    for (const line of lines) {
      const before = this.own.get(line.id)
      if (before?.line === line && before.conversation === conversation) continue
      this.own.set(line.id, { line, conversation, release: before?.release ?? this.hold(line.id) })
      this.store.putMessage(conversation, toMessage(line))
    }
  }

  /** Removes a message that was sent or dropped. */
  remove(clientId: string): void {
    this.store.removeMessages((one) => one === clientId)
    this.own.get(clientId)?.release()
    this.own.delete(clientId)
  }

  /** Removes the messages that a conversation on the server contains. */
  confirm(items: readonly Pick<Line, 'client_id'>[]): void {
    const known = new Set(items.map(({ client_id }) => client_id))
    this.store.removeMessages((clientId) => known.has(clientId))
  }

  /** Removes the messages of this tab. */
  discard(): void {
    for (const id of this.own.keys()) this.remove(id)
  }

  /** Keeps the messages in storage. Must be called before the view is cleared. */
  leave(): void {
    for (const { release } of this.own.values()) release()
    this.own.clear()
  }

  /**
   * Calls `show` for each stored message that the server has not confirmed, when no other tab has it. `show` must
   * add it to the view.
   */
  restore(
    conversation: string,
    left: AbortSignal,
    isShown: (clientId: string) => boolean,
    show: (message: UnsentMessage) => void,
  ): void {
    for (const { clientId } of this.store.listMessages(conversation)) {
      if (isShown(clientId)) continue
      claim(clientId, left, async () => {
        const message = this.store.listMessages(conversation).find((one) => one.clientId === clientId)
        if (left.aborted || message === undefined || isShown(clientId)) return
        const released = new Promise<void>((resolve) => {
          this.claimed.set(clientId, resolve)
        })
        show(message)
        await released
      })
    }
  }

  /** Claims a message of this tab. Returns a function that ends the claim. */
  private hold(id: string): () => void {
    const release = this.claimed.get(id)
    this.claimed.delete(id)
    if (release !== undefined) return release
    const ended = new AbortController()
    claim(
      id,
      ended.signal,
      () => new Promise<void>((resolve) => ended.signal.addEventListener('abort', () => resolve())),
    )
    return () => ended.abort()
  }
}

function toMessage({ id, text = '', files = [], created_at, sending }: Line): UnsentMessage {
  const { code, retryAtMs } = typeof sending === 'object' ? sending : {}
  return {
    ...{ clientId: id, text, files, atMs: created_at * 1000 },
    ...(code !== undefined && { failure: { code, ...(retryAtMs !== undefined && { retryAtMs }) } }),
  }
}
