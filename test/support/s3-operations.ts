/** Determines which S3 operation a request calls. */

export type S3Operation =
  | 'HeadBucket'
  | 'ListObjectsV2'
  | 'ListMultipartUploads'
  | 'GetObject'
  | 'HeadObject'
  | 'PutObject'
  | 'DeleteObject'
  | 'CreateMultipartUpload'
  | 'UploadPart'
  | 'CompleteMultipartUpload'
  | 'AbortMultipartUpload'

/** The operations by HTTP method, target (bucket or object) and query parameter. */
const operations: readonly [method: string, onKey: boolean, parameter: string, operation: S3Operation][] = [
  ['HEAD', false, '', 'HeadBucket'],
  ['GET', false, 'list-type', 'ListObjectsV2'],
  ['GET', false, 'uploads', 'ListMultipartUploads'],
  ['POST', true, 'uploads', 'CreateMultipartUpload'],
  ['PUT', true, 'partNumber', 'UploadPart'],
  ['POST', true, 'uploadId', 'CompleteMultipartUpload'],
  ['DELETE', true, 'uploadId', 'AbortMultipartUpload'],
  ['GET', true, '', 'GetObject'],
  ['HEAD', true, '', 'HeadObject'],
  ['PUT', true, '', 'PutObject'],
  ['DELETE', true, '', 'DeleteObject'],
]

export function nameOperation(method: string | undefined, key: string, query: URLSearchParams): S3Operation {
  const found = operations.find(
    ([itsMethod, onKey, parameter]) =>
      itsMethod === method && onKey === (key !== '') && (parameter === '' || query.has(parameter)),
  )
  if (found === undefined) throw new Error(`not an S3 operation: ${method} /${key}?${query}`)
  return found[3]
}
