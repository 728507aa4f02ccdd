//! The small words of each language: frequent, rarely misspelled, seldom lent. The first language of a list is
//! the one that a doubtful text is taken for.

/// The small words of each language written in Latin script, and letters that few others use.
pub(super) const LATIN_WORDS: &[(&str, &str)] = &[
    (
        "en",
        "the and to of a i in is it you that for on my this with have not was are be we can please your me at but as if \
         from or do so an has had no when what how will would there they by been just get out up all any our were \
         hello hi thanks thank order after don't i'm it's could should did does which who why where more still only \
         because about am than then them their he she his her its too also want need help us like one two new",
    ),
    (
        "de",
        "der die das und ist nicht ich sie wir mit auf für ein eine einen zu den dem von im es bitte habe haben wird \
         auch sich dass noch aber bei aus nach wie ihre ihr ihnen mein meine kann können guten tag hallo danke vielen \
         seit wenn oder nur schon sehr zum zur als bin wurde keine kein mir mich uns was war diese dieser heute",
    ),
    (
        "fr",
        "le la les des du de et est je vous nous ne pas que qui un une pour dans sur avec mon ma mes votre vos ce cette \
         il elle au aux bonjour merci plus j'ai n'est c'est mais par être suis avez avons très comme bien sont ont \
         depuis pouvez toujours cordialement été aussi rien sans",
    ),
    (
        "es",
        "el la los las de que y no es en un una por para con mi me se lo su al del pero como más muy hola gracias buenos \
         días puedo quiero tengo está he ha este esta pedido favor desde cuando todavía estoy ustedes le nos sin ya \
         usted son fue hay también porque",
    ),
    (
        "it",
        "il lo la i gli le di che e non è un una per con mio mia mi si del della dei delle al alla ho ha sono grazie \
         buongiorno salve vorrei ma come più anche questo questa dal nel nella ordine ancora posso avete vostro molto \
         essere stato perché quando cosa",
    ),
    (
        "pt",
        "o a os as de que e não é em um uma por para com meu minha me se do da dos das no na ao mas como mais muito olá \
         obrigado obrigada bom dia posso quero tenho está este esta pedido favor desde quando ainda estou vocês foi \
         são já também eu você sem pelo pela",
    ),
    (
        "nl",
        "de het een en van ik is niet dat op te in mijn met voor zijn er u maar aan wij naar hebben heb bij ook nog als \
         om dan wel goed graag bedankt hallo beste kan kunt wordt deze dit geen uw jullie mij ons sinds wat waar werd \
         alvast vriendelijke groet door",
    ),
    (
        "da",
        "og jeg det er ikke en et at på til med for har min mit vi de den som kan men fra hej tak venlig hilsen der om \
         jeres mig os når hvad være blev efter også kun nogen endnu skal vil hvis af ham hun bliver",
    ),
    (
        "no",
        "og jeg det er ikke en et at på til med for har min mitt vi de den som kan men fra hei takk vennlig hilsen der om \
         deres meg oss når hva være ble etter også bare noen ennå skal vil hvis av etter blir dere fått",
    ),
    (
        "sv",
        "och jag det är inte en ett att på till med för har min mitt vi de den som kan men från hej tack vänliga hälsningar \
         om er mig oss när vad vara blev efter också bara någon ännu ska vill av fått får ni",
    ),
    (
        "fi",
        "ja on ei en että se minun olen mutta kun voi myös hei kiitos tai niin ovat oli jos vain kuin mitä sen tämä minulle \
         teidän ole saanut olisi voisitteko terveisin nyt vielä sitten mikä tämän jo minä mitään",
    ),
    (
        "pl",
        "i w nie na się z do to jest że jak o za po od ale mam moje mój dzień dobry proszę dziękuję czy był była już \
         tylko dla mi przez jestem pozdrawiam co tego mnie są może przy bardzo gdy jeszcze zamówienie także",
    ),
    (
        "cs",
        "a je se na v že to s z do jsem ne by ale jak mi za dobrý den děkuji prosím mám můj moje už když nebo po od pro \
         tak jen není jsou byl byla být při ještě které který jako co mě",
    ),
    (
        "hu",
        "a az és nem hogy is van egy meg de ha csak már volt mint én kérem köszönöm tisztelt nekem még vagy sem el ki be \
         üdvözlettel szeretném lehet ez azt kell minden",
    ),
    (
        "ro",
        "și în de la nu este că pe cu un o pentru din mai am sunt bună ziua mulțumesc vă rog dar care fost sau mi se ați \
         meu mea când după această",
    ),
    (
        "tr",
        "ve bir bu için ile de da çok ama ne var yok değil merhaba teşekkürler lütfen olarak daha gibi ben benim bana \
         mi kadar sonra nasıl iyi günler siparişim hala henüz olan en ki size",
    ),
    (
        "vi",
        "và của là có không tôi cho được các một với này đã trong khi để cảm ơn xin chào nhưng đến từ về như người anh chị",
    ),
    (
        "id",
        "yang dan di ini itu dengan untuk tidak saya dari ke ada pada akan sudah belum bisa terima kasih mohon halo tetapi",
    ),
];

/// The small words of the Cyrillic languages.
pub(super) const CYRILLIC_WORDS: &[(&str, &str)] = &[
    (
        "ru",
        "и в не на я что с по это как но у за мы вы меня мне для из от же так уже был была есть нет если здравствуйте спасибо пожалуйста",
    ),
    (
        "uk",
        "і в не на я що з по це як але у за ми ви мене мені для із від вже був була є немає якщо вітаю дякую будь ласка та й",
    ),
    ("bg", "и в не на аз че с по това как но за ми вие мен от вече беше е няма ако здравейте благодаря моля да се съм"),
];
