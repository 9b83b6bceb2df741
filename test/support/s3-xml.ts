/** Renders S3 responses as XML. */

export function errorXml(code: string): string {
  return `<?xml version="1.0"?><Error><Code>${code}</Code><Message>Scripted error.</Message></Error>`
}

export function listXml(
  entries: readonly { key: string; modifiedMs: number }[],
  isTruncated: boolean,
): string {
  const contents = entries.map(
    ({ key, modifiedMs }) =>
      `<Contents><Key>${key}</Key><LastModified>${new Date(modifiedMs).toISOString()}</LastModified></Contents>`,
  )
  const next = isTruncated ? `<NextContinuationToken>${entries.at(-1)?.key}</NextContinuationToken>` : ''
  return `<ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`
}

export function uploadsXml(
  entries: readonly { key: string; uploadId: string; begunMs: number }[],
  isTruncated: boolean,
): string {
  const uploads = entries.map(
    ({ key, uploadId, begunMs }) =>
      `<Upload><Key>${key}</Key><UploadId>${uploadId}</UploadId><Initiated>${new Date(begunMs).toISOString()}</Initiated></Upload>`,
  )
  const last = entries.at(-1)
  const next = isTruncated
    ? `<NextKeyMarker>${last?.key}</NextKeyMarker><NextUploadIdMarker>${last?.uploadId}</NextUploadIdMarker>`
    : ''
  return `<ListMultipartUploadsResult><IsTruncated>${isTruncated}</IsTruncated>${next}${uploads.join('')}</ListMultipartUploadsResult>`
}
