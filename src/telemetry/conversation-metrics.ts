/** Defines the metrics of stored turns and webhooks. */
import { Counter, Histogram, type Registry } from 'prom-client'

/** Bucket bounds in seconds. A commit takes milliseconds, but seconds on a failing disk. */
const flushBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export type EndedStatus = 'completed' | 'incomplete' | 'failed' | 'cancelled'

/** Reasons why a turn that should be stored runs without being stored. */
export type UnstoredReason = 'quota' | 'too_large' | 'full' | 'unavailable'

export class ConversationMetrics {
  private readonly turns: Counter<'status'>
  private readonly unstored: Counter<'reason'>
  private readonly resumes: Counter<'api'>
  private readonly flushes: Histogram
  private readonly webhookAttempts: Counter<'outcome'>

  constructor(registry: Registry) {
    const registers = [registry]
    this.turns = new Counter({
      name: 'parley_turns_total',
      help: 'Stored turns that have ended.',
      labelNames: ['status'],
      registers,
    })
    this.unstored = new Counter({
      name: 'parley_turns_unstored_total',
      help: 'Turns that ran although the server could not store them.',
      labelNames: ['reason'],
      registers,
    })
    this.resumes = new Counter({
      name: 'parley_turn_resumes_total',
      help: 'Streams of stored turns that a client has resumed.',
      labelNames: ['api'],
      registers,
    })
    this.webhookAttempts = new Counter({
      name: 'parley_webhook_attempts_total',
      help: 'Attempts to deliver an event to a webhook: delivered, retried later, or failed for good.',
      labelNames: ['outcome'],
      registers,
    })
    this.flushes = new Histogram({
      name: 'parley_turn_flush_seconds',
      help: 'Duration of the transactions that store the events of running turns, in seconds.',
      buckets: flushBuckets,
      registers,
    })
  }

  webhookAttempted(outcome: 'delivered' | 'retried' | 'failed'): void {
    this.webhookAttempts.inc({ outcome })
  }

  turnEnded(status: EndedStatus): void {
    this.turns.inc({ status })
  }

  turnUnstored(reason: UnstoredReason): void {
    this.unstored.inc({ reason })
  }

  streamResumed(api: 'chat' | 'responses'): void {
    this.resumes.inc({ api })
  }

  flushed(durationMs: number): void {
    this.flushes.observe(durationMs / 1000)
  }
}
