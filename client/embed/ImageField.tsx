/** Edits an image of the theme: the URL of an image, or a file that becomes part of the definition. */
import { ActionIcon, Button, FileButton, Group, Image, Input, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useField } from '../agents/edit/fields.tsx'
import { renderSize } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { imageTypes, readImage, sizeOfDataUrl } from './image-data.ts'

/** Moves the button to the next line if the field would be too narrow for a URL. */
const FIELD_FLEX = '1 1 200px'

interface ImageFieldProps {
  readonly path: readonly string[]
  readonly label: string
  readonly about: string
  readonly example: string
}

export function ImageField({ path, label, about, example }: ImageFieldProps) {
  const { text, error, isDisabled, attributes, set } = useField(path)
  const [problem, setProblem] = useState<string>()
  const change = (value: string | undefined) => {
    setProblem(undefined)
    set(value)
  }
  const read = (file: File | null) => {
    if (file === null) return
    readImage(file).then(change, (thrown: Error) => setProblem(thrown.message))
  }
  const shown = problem ?? error
  return (
    <div>
      <Group gap="xs" align="flex-end">
        {text.startsWith('data:') ? (
          <Input.Wrapper label={label} flex={FIELD_FLEX} miw={0}>
            <Group gap="xs" wrap="nowrap" className="image-value" {...attributes} tabIndex={-1}>
              <Image src={text} alt="" w={24} h={24} fit="contain" />
              <Text size="xs" lh={1.3} flex={1} py={4}>
                {t('embed.imageInside', { size: renderSize(sizeOfDataUrl(text)) })}
              </Text>
              <ActionIcon
                variant="subtle"
                color="gray"
                size="sm"
                aria-label={t('embed.removeImage')}
                disabled={isDisabled}
                onClick={() => change(undefined)}
              >
                <Icon name="cross" size={14} />
              </ActionIcon>
            </Group>
          </Input.Wrapper>
        ) : (
          <TextInput
            {...attributes}
            label={label}
            flex={FIELD_FLEX}
            placeholder={example}
            value={text}
            error={shown !== undefined}
            disabled={isDisabled}
            onChange={({ currentTarget: { value } }) => change(value === '' ? undefined : value)}
          />
        )}
        <FileButton
          onChange={read}
          accept={imageTypes.join(',')}
          inputProps={{ 'aria-label': t('embed.chooseImageFor', { field: label }) }}
        >
          {(props) => (
            <Button variant="default" disabled={isDisabled} {...props}>
              {t('embed.chooseImage')}
            </Button>
          )}
        </FileButton>
      </Group>
      <Text
        size="xs"
        mt={4}
        c={shown === undefined ? 'dimmed' : 'var(--mantine-color-error)'}
        role={shown === undefined ? undefined : 'alert'}
      >
        {shown ?? about}
      </Text>
    </div>
  )
}
