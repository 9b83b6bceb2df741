/** Sends the visitor's messages in order, and repeats attempts whose connection was lost. */
import { type Failure, toChatFailure } from '../failure.ts'
import { delayOf, type FeedTiming, feedTiming } from './feed.ts'

interface Delivery {
  /** Makes one attempt. @throws ChatFailure */
  readonly send: () => Promise<void>
  /** Called after each failed attempt; `isLast` is false if another attempt follows. */
  readonly onFailure: (thrown: unknown, isLast: boolean) => void
}

/** The messages of one conversation that are not yet sent, oldest first. */
interface Queue {
  readonly deliveries: Delivery[]
  isSending: boolean
}

const newQueue = (): Queue => ({ deliveries: [], isSending: false })

export class Outbox {
  private readonly mayRepeat: () => boolean
  private readonly timing: FeedTiming
  private queue = newQueue()
  /** Ends the current wait. */
  private endWait: (() => void) | undefined

  /**
   * `mayRepeat` returns whether failed attempts are repeated. If not, the visitor can send the message again.
   */
  constructor(mayRepeat: () => boolean, timing = feedTiming) {
    this.mayRepeat = mayRepeat
    this.timing = timing
  }

  add(delivery: Delivery): void {
    this.queue.deliveries.push(delivery)
    if (!this.queue.isSending) void this.run(this.queue)
  }

  /** Makes the next attempt immediately. */
  wake(): void {
    this.endWait?.()
  }

  /** Drops the messages, because the visitor has left the conversation. */
  clear(): void {
    this.queue = newQueue()
    this.wake()
  }

  private async run(queue: Queue): Promise<void> {
    queue.isSending = true
    for (let next = queue.deliveries.shift(); next !== undefined; next = queue.deliveries.shift())
      await this.deliver(next, queue)
    queue.isSending = false
  }

  /** Resolves when the message was sent, dropped or refused. */
  private async deliver(delivery: Delivery, queue: Queue): Promise<void> {
    for (let failures = 0; this.queue === queue; failures++) {
      try {
        return await delivery.send()
      } catch (thrown) {
        const { failure } = toChatFailure(thrown)
        const isLast = !this.mayRepeat() || !isTemporary(failure)
        delivery.onFailure(thrown, isLast)
        if (isLast) return
        await this.pause(Math.max(delayOf(failures, this.timing), (failure.retryAtMs ?? 0) - Date.now()))
      }
    }
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        this.endWait = undefined
        resolve()
      }
      const timer = setTimeout(end, ms)
      this.endWait = end
    })
  }
}

const temporary: ReadonlySet<Failure['code']> = new Set([
  'offline',
  'unreachable',
  'interrupted',
  'busy',
  'server',
  'rate_limited',
])

function isTemporary({ code }: Failure): boolean {
  return temporary.has(code)
}
