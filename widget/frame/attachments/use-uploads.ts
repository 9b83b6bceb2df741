/** Loads the script that uploads files when the visitor chooses the first one. */
import { type ComponentType, useRef, useState } from 'react'
import type { TransfersProps } from '../components/Transfers.tsx'
import { useFrame } from '../frame-context.ts'
import type { Attachment } from './attachments.ts'
import type { Transfer, Uploader } from './uploader.ts'

export interface Uploads {
  readonly transfers: readonly Transfer[]
  /** Undefined before the first upload. */
  readonly View: ComponentType<TransfersProps> | undefined
  /** Rejects if the script cannot be loaded. */
  readonly add: (file: File) => Promise<void>
  readonly pause: (id: string) => void
  readonly resume: (id: string) => void
  readonly remove: (id: string) => void
  /** Deletes a complete upload. */
  readonly discard: (uploadId: string) => void
}

export function useUploads(onDone: (attachment: Attachment) => void): Uploads {
  const { session } = useFrame()
  const [transfers, setTransfers] = useState<readonly Transfer[]>([])
  const [View, setView] = useState<ComponentType<TransfersProps>>()
  const uploader = useRef<Uploader>(undefined)

  async function load(): Promise<Uploader> {
    const [{ Uploader }, { Transfers }] = await Promise.all([
      import('./uploader.ts'),
      import('../components/Transfers.tsx'),
    ])
    setView(() => Transfers)
    uploader.current ??= new Uploader({
      create: (filename, bytes) => session.stored.createUpload(filename, bytes),
      readVisitor: () => session.stored.readVisitor(),
      onChange: setTransfers,
      onDone,
    })
    return uploader.current
  }

  return {
    transfers,
    View,
    add: async (file) => (uploader.current ?? (await load())).add(file),
    pause: (id) => uploader.current?.pause(id),
    resume: (id) => uploader.current?.resume(id),
    remove: (id) => uploader.current?.remove(id),
    discard: (uploadId) => uploader.current?.discard(uploadId),
  }
}
