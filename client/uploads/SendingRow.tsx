/** A file on its way: how far it is, and what can be done about it. */
import { ActionIcon, Group, Progress, Stack, Text } from '@mantine/core'
import { renderShare, renderSize } from '../lib/format-size.ts'
import { Icon } from '../shell/icons.tsx'
import { cancelUpload, dismissUpload, type LocalUpload, pauseUpload, resumeUpload } from './uploader.ts'

const says = {
  waiting: 'Waiting',
  running: 'Sending',
  paused: 'Paused',
  failed: 'Stopped',
  done: 'Sent',
} as const

const colors = { waiting: 'gray', running: 'indigo', paused: 'gray', failed: 'red', done: 'teal' } as const

export function SendingRow(upload: LocalUpload) {
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
            {says[state]} {state === 'done' ? '' : `${renderShare(share)} of `}
            {renderSize(sizeBytes)}
          </Text>
        </Group>
        <Progress value={share * 100} color={colors[state]} aria-label={`Sent of ${filename}`} />
        {problem === undefined ? null : (
          <Text size="xs" c="var(--parley-bad)" role="alert">
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
    return <Action icon="cross" label={`Take ${filename} off the list`} onClick={() => dismissUpload(id)} />
  }
  const isStopped = state === 'paused' || state === 'failed'
  return (
    <Group gap={4} wrap="nowrap">
      {isStopped ? (
        <Action icon="play" label={`Resume ${filename}`} onClick={() => resumeUpload(id)} />
      ) : (
        <Action icon="pause" label={`Pause ${filename}`} onClick={() => void pauseUpload(id)} />
      )}
      <Action icon="cross" label={`Cancel ${filename}`} onClick={() => void cancelUpload(id)} />
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
