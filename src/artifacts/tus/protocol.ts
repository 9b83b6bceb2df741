/** What clients may expect of uploads here, so that they need not try. Decision: 9. */
import type { Dependencies } from '../dependencies.ts'
import { MAX_METADATA_BYTES, MAX_NAME_LENGTH } from '../metadata.ts'
import { artifactKinds, type Capabilities, MAX_WAIT_SECONDS } from '../schema.ts'

/** What of the upload protocol's extensions is offered; its `checksum` and `concatenation` are not. */
export const uploadExtensions = [
  'creation',
  'creation-with-upload',
  'creation-defer-length',
  'termination',
  'expiration',
] as const

export function describeCapabilities({ config }: Pick<Dependencies, 'config'>): Capabilities {
  return {
    protocolVersion: 2,
    protocolRevision: '2.3',
    kinds: [...artifactKinds],
    extensions: [...uploadExtensions],
    limits: {
      maxUploadBytes: config.limits.maxUploadBytes,
      maxMetadataBytes: MAX_METADATA_BYTES,
      maxNameLength: MAX_NAME_LENGTH,
      maxWaitSeconds: MAX_WAIT_SECONDS,
    },
    checksum: ['sha256'],
  }
}

export const PROTOCOL_VERSION = '1.0.0'

/** What of the protocol's extensions is offered. Decision: 9. */
export const EXTENSIONS = uploadExtensions.join(',')

/** "All PATCH requests MUST use Content-Type: application/offset+octet-stream". */
export const BODY_TYPE = 'application/offset+octet-stream'
