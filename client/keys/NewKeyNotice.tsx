/** A key that was just made, to be taken along. */
import './keys.css'
import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { CodeBlock } from '../components/code/CodeBlock.tsx'
import { renderMoment } from '../lib/format.ts'
import { Icon } from '../shell/icons.tsx'
import type { NewKey } from './actions.ts'

interface NewKeyNoticeProps {
  readonly made: NewKey
  /** Nobody can read it again. */
  readonly isShownOnce: boolean
  readonly onClose: () => void
}

export function NewKeyNotice({ made, isShownOnce, onClose }: NewKeyNoticeProps) {
  return (
    <Stack gap="md">
      {isShownOnce ? (
        <Alert color="yellow" icon={<Icon name="warning" />} title="Copy it now">
          This is the only time the key is shown. Keep it on your server, never in a web page.
        </Alert>
      ) : null}
      <div className="new-key">
        <CodeBlock code={made.key} what="The new key" />
      </div>
      {made.previousValidUntil === undefined ? null : (
        <Text size="sm">
          {made.previousValidUntil * 1_000 <= Date.now()
            ? 'The key before it has stopped working.'
            : `The key before it works until ${renderMoment(made.previousValidUntil)}.`}
        </Text>
      )}
      <Group justify="flex-end">
        <Button onClick={onClose}>{isShownOnce ? 'I have copied it' : 'Done'}</Button>
      </Group>
    </Stack>
  )
}
