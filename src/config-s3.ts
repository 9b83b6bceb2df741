/** What the settings say of a bucket: where it is, what is kept under, and with whose credentials. */
import type { Environment } from './environment.ts'

/** A bucket that bytes are kept in, and how it is reached. */
export interface S3Config {
  readonly bucket: string
  /** Stands before every name in the bucket; empty, or with a slash at its end. */
  readonly prefix: string
  /** Where it is, without a slash at the end; undefined = at AWS. */
  readonly endpoint: string | undefined
  readonly region: string
  /** The bucket stands in the path of every URL, and not before the host name. */
  readonly forcePathStyle: boolean
  /** Undefined = what AWS gives the machine or the container; only for a bucket at AWS. */
  readonly credentials: S3Credentials | undefined
}

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Comes with credentials that are lent for a while. */
  readonly sessionToken: string | undefined
}

/** The region that S3-compatible servers take when they know none. */
const USUAL_REGION = 'us-east-1'

/** The bucket the settings name; undefined when they name none. */
export function toS3Config(given: Environment): S3Config | undefined {
  const { S3_BUCKET: bucket, S3_PREFIX: prefix, S3_ENDPOINT: endpoint } = given
  if (bucket === undefined) return undefined
  return {
    bucket,
    prefix: prefix === undefined ? '' : `${prefix.replace(/\/$/, '')}/`,
    endpoint,
    region: given.S3_REGION ?? given.AWS_REGION ?? USUAL_REGION,
    // Servers beside AWS seldom have a host name for each bucket.
    forcePathStyle: given.S3_FORCE_PATH_STYLE ?? endpoint !== undefined,
    credentials: toCredentials(given),
  }
}

function toCredentials(given: Environment): S3Credentials | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = given
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: given.AWS_SESSION_TOKEN }
}

/** What is wrong with the settings of a bucket taken together; AWS's own are nobody's business without one. */
export function listS3Problems(given: Environment): string[] {
  if (given.S3_BUCKET === undefined) return []
  const [id, secret] = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const
  const [hasId, hasSecret] = [given[id] !== undefined, given[secret] !== undefined]
  if (hasId !== hasSecret) {
    const [there, missing] = hasId ? [id, secret] : [secret, id]
    return [`${missing} is missing; ${there} is of no use without it.`]
  }
  if (hasId || given.S3_ENDPOINT === undefined) return []
  return [`${id} and ${secret} are missing; S3_ENDPOINT needs them: only AWS lends credentials to machines.`]
}
