/** Loads the editors on first use, because they are the largest part of the console. */
import { Skeleton } from '@mantine/core'
import { lazy, Suspense } from 'react'
import type { CodeEditorProps } from './CodeEditor.tsx'
import type { DiffViewProps } from './DiffView.tsx'

const LoadedCodeEditor = lazy(async () => ({ default: (await import('./CodeEditor.tsx')).CodeEditor }))
const LoadedDiffView = lazy(async () => ({ default: (await import('./DiffView.tsx')).DiffView }))

export function CodeEditor(props: CodeEditorProps) {
  return (
    <Suspense fallback={<Skeleton height="100%" radius={0} />}>
      <LoadedCodeEditor {...props} />
    </Suspense>
  )
}

export function DiffView(props: DiffViewProps) {
  return (
    <Suspense fallback={<Skeleton height={160} radius="md" />}>
      <LoadedDiffView {...props} />
    </Suspense>
  )
}
