/** Reads and caches the key sets with which agents verify the identity of visitors. */
import { createLocalJWKSet, type JSONWebKeySet, type LocalJWKSet } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { findKeyProblem } from '../../agents/visitor-rules.ts'
import { EgressClient, type EgressOptions } from '../../http/egress.ts'
import type { Clock } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { isJsonObject, parseJson } from '../../lib/formats/json.ts'

const MAX_BYTES = 64 * 1024
const TIMEOUT_MS = 5_000
const KEEP_MS = 600_000
/** The minimum time before a key set is read again for an unknown key or after a failure. */
const RETRY_MS = 30_000
const MAX_KEPT = 500
const RETRY_AFTER_SECONDS = 30

interface Kept {
  /** Undefined if the last attempt to read the keys failed. */
  readonly keys: LocalJWKSet | undefined
  readonly readAtMs: number
}

export class KeySets {
  private readonly client: EgressClient
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly log: Pick<Logger, 'warn'>
  private readonly kept = new LRUCache<string, Kept>({ max: MAX_KEPT })
  private readonly reading = new Map<string, Promise<Kept>>()

  constructor({
    clock,
    log,
    ...egress
  }: EgressOptions & { readonly clock: Pick<Clock, 'monotonic'>; readonly log: Pick<Logger, 'warn'> }) {
    this.client = new EgressClient(egress)
    this.clock = clock
    this.log = log
  }

  /**
   * Returns the keys at a URL, read at most ten minutes ago. With `isStale`, reads them again if they were
   * read more than 30 seconds ago.
   * @throws ServiceError `service_unavailable` if the keys cannot be read
   */
  async find(url: string, { isStale = false } = {}): Promise<LocalJWKSet> {
    const known = this.kept.get(url)
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : this.clock.monotonic() - known.readAtMs
    const keepMs = known?.keys === undefined || isStale ? RETRY_MS : KEEP_MS
    const { keys } = known !== undefined && ageMs < keepMs ? known : await this.read(url)
    if (keys !== undefined) return keys
    throw new ServiceError('service_unavailable', 'The keys at visitors.jwt.jwksUrl could not be read.', {
      code: 'identity_keys_unavailable',
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    })
  }

  async close(): Promise<void> {
    await this.client.close()
  }

  /** Combines concurrent requests for the same URL. */
  private read(url: string): Promise<Kept> {
    const running = this.reading.get(url)
    if (running !== undefined) return running
    const reading = this.fetch(url)
      .catch((error) => {
        this.log.warn({ err: error, origin: new URL(url).origin }, 'could not read the keys of visitors')
        return undefined
      })
      .then((keys) => {
        const kept = { keys, readAtMs: this.clock.monotonic() }
        this.kept.set(url, kept)
        return kept
      })
      .finally(() => this.reading.delete(url))
    this.reading.set(url, reading)
    return reading
  }

  private async fetch(url: string): Promise<LocalJWKSet> {
    const { status, body, isCut } = await this.client.send(url, {
      method: 'GET',
      headers: { accept: 'application/jwk-set+json, application/json' },
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
    })
    if (status !== 200) throw new Error(`The server answered with ${status}.`)
    if (isCut) throw new Error('The key set is larger than 64 KiB.')
    return createLocalJWKSet(parseKeySet(body.toString()))
  }
}

/** Ignores keys that cannot verify signatures, because a key set may also contain keys for other purposes. */
function parseKeySet(text: string): JSONWebKeySet {
  const set = parseJson(text)
  if (!isJsonObject(set) || !Array.isArray(set.keys)) throw new Error('The response is not a key set.')
  const keys = set.keys.filter((key) => isJsonObject(key) && findKeyProblem(key) === undefined)
  return { keys } as JSONWebKeySet
}
