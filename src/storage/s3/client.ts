/**
 * Creates the S3 client with explicit timeouts and retries. Pins the SDK options that the SDK would otherwise
 * read from the environment or the user's files.
 */
import type { S3Config } from '../../config/config.ts'
import { forbiddenAddress, guardLookup, isForbiddenAddress } from '../../lib/net.ts'
import { Bucket } from './bucket.ts'
import { S3Failure } from './failure.ts'

export interface BucketTimings {
  readonly connectMs: number
  /**
   * Maximum idle time in either direction, in milliseconds. If the reader pauses longer, reading continues
   * with a new call.
   */
  readonly idleMs: number
}

/** 20 seconds is enough, because S3 sends whitespace while it assembles a large object. */
const standardTimings: BucketTimings = { connectMs: 5_000, idleMs: 20_000 }
/**
 * Number of attempts, including the first. The SDK retries 5xx, `SlowDown`, broken connections and timeouts.
 */
const MAX_ATTEMPTS = 3

/** Creates the client without making a call. @throws S3Failure if the endpoint is a forbidden address. */
export async function createBucket(config: S3Config, timings = standardTimings): Promise<Bucket> {
  assertAllowed(config.endpoint)
  // Imported on demand, because loading the SDK takes a quarter of a second and 30 MB.
  const { S3 } = await import('@aws-sdk/client-s3')
  const connection = { keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, lookup: guardLookup() }
  return new Bucket(
    config.bucket,
    new S3({
      region: config.region,
      forcePathStyle: config.forcePathStyle,
      ...(config.endpoint !== undefined && { endpoint: config.endpoint }),
      ...(config.credentials !== undefined && { credentials: toIdentity(config.credentials) }),
      // Supports servers without checksums; request signatures already include a hash of every body.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      retryMode: 'standard',
      maxAttempts: MAX_ATTEMPTS,
      expectContinueHeader: false,
      requestHandler: {
        connectionTimeout: timings.connectMs,
        socketTimeout: timings.idleMs,
        httpAgent: connection,
        httpsAgent: connection,
      },
      ...unaskedSettings,
    }),
  )
}

/** Set explicitly, so that the SDK does not read them from the environment or the user's files. */
const unaskedSettings = {
  defaultsMode: 'standard',
  useArnRegion: false,
  useDualstackEndpoint: false,
  useFipsEndpoint: false,
  disableS3ExpressSessionAuth: false,
  userAgentAppId: 'parley',
} as const

function toIdentity({ sessionToken, ...keys }: NonNullable<S3Config['credentials']>) {
  return sessionToken === undefined ? keys : { ...keys, sessionToken }
}

function assertAllowed(endpoint: string | undefined): void {
  if (endpoint === undefined) return
  const { hostname } = new URL(endpoint)
  if (isForbiddenAddress(hostname)) {
    throw new S3Failure('ForbiddenAddress', undefined, forbiddenAddress(hostname).message)
  }
}
