/** Accepts files to upload, by drag and drop or from a file chooser. */
import { Button, FileButton, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { type DragEvent, useState } from 'react'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { findKind, uploadKindNames } from './artifacts.ts'
import { addUpload } from './uploader.ts'

const kinds = [
  { value: '', label: t('uploads.detect') },
  ...Object.entries(uploadKindNames).map(([value, label]) => ({ value, label })),
]

export function DropZone() {
  const [kind, setKind] = useState('')
  const [name, setName] = useState('')
  const [isOver, setIsOver] = useState(false)
  const send = (files: readonly File[]) => {
    for (const file of files) void addUpload(file, { kind: findKind(kind), name: name.trim() })
    setName('')
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    send([...event.dataTransfer.files])
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same without dragging
    <div
      className="panel drop-zone"
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault()
        setIsOver(true)
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={drop}
    >
      <Group justify="space-between" align="flex-end" gap="md">
        <Group gap="md" wrap="nowrap" className="drop-zone-words">
          <Icon name="uploads" size={28} />
          <Stack gap={2}>
            <Text fw={500}>{t('uploads.dropHere')}</Text>
            <Text size="sm" c="dimmed">
              {t('uploads.orChoose')}
            </Text>
          </Stack>
        </Group>
        <Group gap="sm" align="flex-end">
          <NativeSelect
            label={t('uploads.kind')}
            data={kinds}
            value={kind}
            onChange={(event) => setKind(event.currentTarget.value)}
          />
          <TextInput
            label={t('uploads.name')}
            placeholder={t('uploads.sameAsFile')}
            maxLength={512}
            value={name}
            autoComplete="off"
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <FileButton multiple onChange={send} inputProps={{ 'aria-label': t('uploads.filesToUpload') }}>
            {(props) => <Button {...props}>{t('uploads.chooseFiles')}</Button>}
          </FileButton>
        </Group>
      </Group>
    </div>
  )
}
