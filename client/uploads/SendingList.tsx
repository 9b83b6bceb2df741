/** Lists this browser's uploads, including those that a reload interrupted. */
import { ActionIcon, Button, FileButton, Group, Progress, Stack, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { renderShare, renderSize } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { findKind } from './artifacts.ts'
import {
  addUpload,
  cancelUpload,
  discardUnfinished,
  dismissUpload,
  type LocalUpload,
  listUnfinished,
  listUploads,
  onUploads,
  pauseUpload,
  resumeUpload,
  type UnfinishedUpload,
} from './uploader.ts'

export function SendingList() {
  const uploads = useSyncExternalStore(onUploads, listUploads)
  const unfinished = useUnfinished(uploads.length)
  useFreshList(uploads.map(({ id, state }) => `${id} ${state}`).join())
  const interrupted = (unfinished ?? []).filter(
    ({ filename, sizeBytes }) =>
      !uploads.some((one) => one.filename === filename && one.sizeBytes === sizeBytes),
  )
  if (uploads.length + interrupted.length === 0) return null
  return (
    <Stack className="panel sending" gap={0} component="section" aria-label={t('uploads.fromThisBrowser')}>
      {uploads.map((upload) => (
        <SendingRow key={upload.id} {...upload} />
      ))}
      {interrupted.map((upload) => (
        <UnfinishedRow key={upload.stored.urlStorageKey} upload={upload} />
      ))}
    </Stack>
  )
}

/** Refetches when the number of uploads changes. */
function useUnfinished(count: number) {
  return useQuery({ queryKey: ['unfinished-uploads', count], queryFn: listUnfinished }).data
}

/** Refetches the artifact list when an upload starts, ends or stops. */
function useFreshList(states: string): void {
  const queries = useQueryClient()
  useEffect(() => {
    if (states !== '') void queries.invalidateQueries({ queryKey: ['artifacts', 'list'] })
  }, [states, queries])
}

const stateNames = {
  waiting: t('uploads.waiting'),
  running: t('uploads.uploading'),
  paused: t('uploads.paused'),
  failed: t('uploads.failed'),
  done: t('uploads.uploaded'),
} as const

const colors = { waiting: 'gray', running: 'indigo', paused: 'gray', failed: 'red', done: 'teal' } as const

function SendingRow(upload: LocalUpload) {
  const { filename, sizeBytes, sentBytes, state, problem } = upload
  const share = sizeBytes === 0 ? 1 : sentBytes / sizeBytes
  return (
    <Group className="sending-row" wrap="nowrap" gap="md">
      <Stack gap={4} className="sending-words">
        <Group justify="space-between" gap="xs">
          <Text size="sm" fw={500} className="break-words">
            <bdi>{filename}</bdi>
          </Text>
          <Text size="xs" c="dimmed" role="status">
            {state === 'done'
              ? t('uploads.stateSize', { state: stateNames[state], size: renderSize(sizeBytes) })
              : t('uploads.stateShareOfSize', {
                  state: stateNames[state],
                  share: renderShare(share),
                  size: renderSize(sizeBytes),
                })}
          </Text>
        </Group>
        <Progress
          value={share * 100}
          color={colors[state]}
          aria-label={t('uploads.progressOf', { name: filename })}
        />
        {problem === undefined ? null : (
          <Text size="xs" c="var(--bad)" role="alert">
            {problem}
          </Text>
        )}
      </Stack>
      <SendingActions {...upload} />
    </Group>
  )
}

function SendingActions({ id, filename, state }: LocalUpload) {
  if (state === 'done') {
    return (
      <Action
        icon="cross"
        label={t('uploads.removeFromList', { name: filename })}
        onClick={() => dismissUpload(id)}
      />
    )
  }
  const isStopped = state === 'paused' || state === 'failed'
  return (
    <Group gap={4} wrap="nowrap">
      {isStopped ? (
        <Action
          icon="play"
          label={t('uploads.resume', { name: filename })}
          onClick={() => resumeUpload(id)}
        />
      ) : (
        <Action
          icon="pause"
          label={t('uploads.pause', { name: filename })}
          onClick={() => void pauseUpload(id)}
        />
      )}
      <Action
        icon="cross"
        label={t('uploads.cancel', { name: filename })}
        onClick={() => void cancelUpload(id)}
      />
    </Group>
  )
}

interface ActionProps {
  readonly icon: 'play' | 'pause' | 'cross'
  readonly label: string
  readonly onClick: () => void
}

function Action({ icon, label, onClick }: ActionProps) {
  return (
    <ActionIcon variant="default" size="lg" aria-label={label} title={label} onClick={onClick}>
      <Icon name={icon} size={16} />
    </ActionIcon>
  )
}

function UnfinishedRow({ upload }: { readonly upload: UnfinishedUpload }) {
  const { filename, sizeBytes, sentBytes, stored } = upload
  const [problem, setProblem] = useState<string>()
  const proceed = (file: File | null) => {
    if (file === null) return
    if (file.name !== filename || file.size !== sizeBytes) {
      setProblem(t('uploads.otherFile', { name: filename, size: renderSize(sizeBytes) }))
      return
    }
    void addUpload(file, { kind: findKind(stored.metadata.kind ?? ''), name: stored.metadata.name })
  }
  const share = sentBytes / sizeBytes
  return (
    <Group className="sending-row" gap="md">
      <Stack gap={4} className="sending-words">
        <Group justify="space-between" gap="xs">
          <Text size="sm" fw={500} className="break-words">
            <bdi>{filename}</bdi>
          </Text>
          <Text size="xs" c="dimmed">
            {t('uploads.interruptedAt', { share: renderShare(share), size: renderSize(sizeBytes) })}
          </Text>
        </Group>
        <Progress value={share * 100} color="gray" aria-label={t('uploads.progressOf', { name: filename })} />
        {problem === undefined ? null : (
          <Text size="xs" c="var(--bad)" role="alert">
            {problem}
          </Text>
        )}
      </Stack>
      <Group gap="xs" wrap="nowrap">
        <FileButton onChange={proceed} inputProps={{ 'aria-label': t('uploads.choose', { name: filename }) }}>
          {(props) => (
            <Button {...props} size="xs">
              {t('uploads.chooseAgain')}
            </Button>
          )}
        </FileButton>
        <DiscardButton upload={upload} />
      </Group>
    </Group>
  )
}

function DiscardButton({ upload }: { readonly upload: UnfinishedUpload }) {
  const queries = useQueryClient()
  const { mutate, isPending } = useMutation({
    mutationFn: () => discardUnfinished(upload),
    onSettled: () => queries.invalidateQueries(),
  })
  return (
    <Button size="xs" variant="default" loading={isPending} onClick={() => mutate()}>
      {t('uploads.discard')}
    </Button>
  )
}
