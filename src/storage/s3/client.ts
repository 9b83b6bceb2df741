/** Makes the way to a bucket: bounded in time, tried again where that may help, and led by the settings alone. */

import type { S3Config } from '../../config/config.ts'
import { forbiddenAddress, guardLookup, isForbiddenAddress } from '../../lib/net.ts'
import { Bucket } from './bucket.ts'
import { S3Failure } from './failure.ts'

/** How long the steps of a call may take, each time it is tried. */
export interface BucketTimings {
  readonly connectMs: number
  /** Without a byte in either direction; stands still for nobody, so a reader that pauses longer starts a new call. */
  readonly idleMs: number
}

/** S3 sends blanks while it puts a large object together. */
const standardTimings: BucketTimings = { connectMs: 5_000, idleMs: 20_000 }
/** The first time included; only what may pass is tried again: 5xx, `SlowDown`, broken connections, silence. */
const MAX_ATTEMPTS = 3

/**
 * Makes the way to a bucket; nothing is sent yet. The SDK is loaded here: it takes a quarter of a second and 30 MB.
 * @throws S3Failure when the endpoint is an address that no store may have.
 */
export async function createBucket(config: S3Config, timings = standardTimings): Promise<Bucket> {
  assertAllowed(config.endpoint)
  const { S3 } = await import('@aws-sdk/client-s3')
  const connection = { keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, lookup: guardLookup() }
  return new Bucket(
    config.bucket,
    new S3({
      region: config.region,
      forcePathStyle: config.forcePathStyle,
      ...(config.endpoint !== undefined && { endpoint: config.endpoint }),
      ...(config.credentials !== undefined && { credentials: toIdentity(config.credentials) }),
      // Endpoints that know no checksums must work too; the signature covers a hash of every body.
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

/** What the SDK would otherwise look for in the environment and in files of the user's. */
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

/** Security: 2.10 */
function assertAllowed(endpoint: string | undefined): void {
  if (endpoint === undefined) return
  const { hostname } = new URL(endpoint)
  if (isForbiddenAddress(hostname)) {
    throw new S3Failure('ForbiddenAddress', undefined, forbiddenAddress(hostname).message)
  }
}
