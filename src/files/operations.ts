/** Defines the API operations on files. Upload and download exist only in the REST API. */
import { z } from 'zod'
import { actorOf } from '../identity/audit.ts'
import { operationsOf, withRequestLog } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'
import { createFile, deleteFile, downloadFile, getFile, listFiles } from './files.ts'
import {
  FileDeleted,
  FileList,
  FileListQuery,
  FileObject,
  FileReference,
  FileUpload,
  renderFile,
  renderFileList,
} from './schema.ts'

const notFound = { 404: 'The file does not exist.' }

const { query, mutation } = operationsOf<Dependencies>()('Files', { callers: ['parent'] })

export const filesOperations = {
  create: mutation({
    http: { method: 'POST', path: '/v1/files' },
    rpc: false,
    request: {
      upload: async ({ deps, caller }) => ({
        files: deps.fileBlobs,
        limit: await deps.quota.findSizeLimit(deps.db, caller.tenantId),
      }),
    },
    docs: {
      summary: 'Upload a file',
      failures: {
        413: "The file is too large, or would exceed the key's storage quota (`storage_quota_exceeded`).",
        507: 'The storage is full.',
      },
    },
    input: FileUpload,
    output: FileObject,
    run: async ({ context: { deps, caller }, input }) =>
      renderFile(await createFile(deps, caller.tenantId, input)),
  }),

  list: query({
    http: { method: 'GET', path: '/v1/files' },
    docs: { summary: 'List your files' },
    input: FileListQuery,
    output: FileList,
    run: async ({ context: { deps, caller }, input }) =>
      renderFileList(await listFiles(deps, caller.tenantId, input)),
  }),

  get: query({
    http: { method: 'GET', path: '/v1/files/{file_id}' },
    docs: { summary: 'Get a file', failures: notFound },
    input: FileReference,
    output: FileObject,
    run: async ({ context: { deps, caller }, input }) =>
      renderFile(await getFile(deps, caller.tenantId, input.file_id)),
  }),

  content: query({
    http: { method: 'GET', path: '/v1/files/{file_id}/content' },
    rpc: false,
    response: { download: ['*/*'] },
    docs: {
      summary: "Download a file's content",
      failures: { ...notFound, 416: 'The range starts after the last byte.' },
    },
    input: FileReference,
    output: z.never(),
    run: ({ context: { deps, caller }, input }) => downloadFile(deps, caller.tenantId, input.file_id),
  }),

  delete: mutation({
    http: { method: 'DELETE', path: '/v1/files/{file_id}' },
    docs: { summary: 'Delete a file', failures: notFound },
    input: FileReference,
    output: FileDeleted,
    run: async ({ context, input }) => {
      await deleteFile(withRequestLog(context), actorOf(context), context.caller.tenantId, input.file_id)
      return { id: input.file_id, object: 'file' as const, deleted: true as const }
    },
  }),
}
