/* Two pairs of RSA keys that only tests use, and what `openssl pkeyutl` sealed with the first: the bytes 0 to 31, by
 * OAEP with SHA-256. */
#ifndef RV_TESTS_KIT_RSA_KEYS_H
#define RV_TESTS_KIT_RSA_KEYS_H

/* clang-format off */
#define RSA_PUBLIC \
    "-----BEGIN PUBLIC KEY-----\n" \
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwd/1wlA6nkqwigT0AFfG\n" \
    "lzUX7aar/3qCjFDyLN6FJJCEGA+XHx8aFZUcdrw/9fQt8L9poB+ip89uqUt9DVut\n" \
    "90u5UXDzA3JAqDWULRvlSQamCXzX90/0Fy+JrI3qaAiyibnGOtDR9v0/JXBnPLAX\n" \
    "T0Idl4ZBJo3yiXK7peHYdcaWRQXGyNzpYwyWsadBIS6vepR/OhpMu4MuYlwQn+38\n" \
    "hKF2aVy2AEj0g3f0pfNS8dzuPmDHJ/0HTtk71Mc2RSVZHqo5QJH3LvMIyIn8mUgO\n" \
    "euG+HrM4MKK0iNrytbrHQoXOv1vdFlPCZ3WBu8tK4MyyHHNmhxiC/+aZekbfKGKf\n" \
    "+QIDAQAB\n" \
    "-----END PUBLIC KEY-----\n"
#define RSA_PRIVATE \
    "-----BEGIN PRIVATE KEY-----\n" \
    "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDB3/XCUDqeSrCK\n" \
    "BPQAV8aXNRftpqv/eoKMUPIs3oUkkIQYD5cfHxoVlRx2vD/19C3wv2mgH6Knz26p\n" \
    "S30NW633S7lRcPMDckCoNZQtG+VJBqYJfNf3T/QXL4msjepoCLKJucY60NH2/T8l\n" \
    "cGc8sBdPQh2XhkEmjfKJcrul4dh1xpZFBcbI3OljDJaxp0EhLq96lH86Gky7gy5i\n" \
    "XBCf7fyEoXZpXLYASPSDd/Sl81Lx3O4+YMcn/QdO2TvUxzZFJVkeqjlAkfcu8wjI\n" \
    "ifyZSA564b4eszgworSI2vK1usdChc6/W90WU8JndYG7y0rgzLIcc2aHGIL/5pl6\n" \
    "Rt8oYp/5AgMBAAECggEAGDaZYfhVKdnYLJSryLMtuUrHP0YWqySo0090v4fXBxcJ\n" \
    "eFvSGu/ueQ2TbXzbXCNv7WZqkbYBwYWVo40rBBUUKBOMBJDfuOl3C8sNQ4j9XN54\n" \
    "tCykaF3S9WZZgnSC9xVG/w51pHjaEEfWsB1Wt2yirKJsQbVhw6fsx5/Nsc0AFM1N\n" \
    "5ZVoX7XrhphdtPFcqp69WYIk47jMAtcUgREUc6rnIu03LNRLjXw/uGXnoAZ6JQ6r\n" \
    "0Z/OVE01W04QamTFj1LLMsCCmyL4Dg6bzea+yQdxY+hq/ed98dbIZq6kXWE5NoIq\n" \
    "9tZR14zaRp2+YIirCPUTnO54BHovwiSEcHVXOaLh1QKBgQDiTEPifMXVdI6BwimT\n" \
    "kZBVfDOkCyODxouTG8X0d0qvhTE7LO1o6z5QaN2bU5Bnjm8guAx2yCjztrWeLrlS\n" \
    "imdNJSBnoeDFsY8F86IhFN6MiwFYXuDJ7W9ouaJ7Qqmm0++THbhTtHriIuw97eoh\n" \
    "bpuYLHIic2h2/d3p8bbGcqClFwKBgQDbUkMI4yXFQSkH6iv2z8kjmH6egsOf5uPM\n" \
    "MByFaa6xDrDAiTxW4PDU0BUL+gbF3vJLf4XTk6sdXiuRn8MDuPrVGSsSB5uLOM+z\n" \
    "f3jFuXNIuI3UfXgLsv3uNwbUNy9SS6OKwuiLC0BgTMrqOBAHJa95BL0llXLMuY6g\n" \
    "LWXqA7otbwKBgH2594FO5y8XqdEnyaemGPWVoq9CTQH6fjNGG+4dlM39hwOki2Ze\n" \
    "RGmySWTxwWn3dYBNIQehXzdATJlMxkO4h3oR5XYONu4/HwIkgPA2Qwr8c8vgMq2d\n" \
    "j+c0M7Sdrdn1J8apnW5L+HXJB03E7+6RIDskfmjri5+InhFK7MxGhUATAoGBALoL\n" \
    "/EWLuryr28yU/xpthSim8bIxJxV73X2Wynr5/XDBD3skb4UbZ/B/W3s/a4Nq7orQ\n" \
    "8ItcVumgusDbj6iWwGEI6ppuzam6Vabk2WSRPpRPyjCZBr6V5gavsyFOdtwOwfqy\n" \
    "AGYC82c9fVxWlnIZq9KzDGjXb/zu42hJWoy7ALINAoGBAMAQMjp/ahURKtkfw3z6\n" \
    "gp6v8OTBJ3i7UI/k0zXxrmjDnFdv4fRPieneVilCEf+SMgFfdGxkkXMHUTlxifSW\n" \
    "nm9Kj3GOEvb+RwYnGo08fwfd7r05Fn8fp4BqxExNi9gujQpsRIcNaxq64tfcBHTr\n" \
    "W9UyhoGh1sANHBbVYHCdq9SQ\n" \
    "-----END PRIVATE KEY-----\n"
#define RSA_PKCS1_PUBLIC \
    "-----BEGIN RSA PUBLIC KEY-----\n" \
    "MIIBCgKCAQEAwd/1wlA6nkqwigT0AFfGlzUX7aar/3qCjFDyLN6FJJCEGA+XHx8a\n" \
    "FZUcdrw/9fQt8L9poB+ip89uqUt9DVut90u5UXDzA3JAqDWULRvlSQamCXzX90/0\n" \
    "Fy+JrI3qaAiyibnGOtDR9v0/JXBnPLAXT0Idl4ZBJo3yiXK7peHYdcaWRQXGyNzp\n" \
    "YwyWsadBIS6vepR/OhpMu4MuYlwQn+38hKF2aVy2AEj0g3f0pfNS8dzuPmDHJ/0H\n" \
    "Ttk71Mc2RSVZHqo5QJH3LvMIyIn8mUgOeuG+HrM4MKK0iNrytbrHQoXOv1vdFlPC\n" \
    "Z3WBu8tK4MyyHHNmhxiC/+aZekbfKGKf+QIDAQAB\n" \
    "-----END RSA PUBLIC KEY-----\n"
#define RSA_PKCS1_PRIVATE \
    "-----BEGIN RSA PRIVATE KEY-----\n" \
    "MIIEpAIBAAKCAQEAwd/1wlA6nkqwigT0AFfGlzUX7aar/3qCjFDyLN6FJJCEGA+X\n" \
    "Hx8aFZUcdrw/9fQt8L9poB+ip89uqUt9DVut90u5UXDzA3JAqDWULRvlSQamCXzX\n" \
    "90/0Fy+JrI3qaAiyibnGOtDR9v0/JXBnPLAXT0Idl4ZBJo3yiXK7peHYdcaWRQXG\n" \
    "yNzpYwyWsadBIS6vepR/OhpMu4MuYlwQn+38hKF2aVy2AEj0g3f0pfNS8dzuPmDH\n" \
    "J/0HTtk71Mc2RSVZHqo5QJH3LvMIyIn8mUgOeuG+HrM4MKK0iNrytbrHQoXOv1vd\n" \
    "FlPCZ3WBu8tK4MyyHHNmhxiC/+aZekbfKGKf+QIDAQABAoIBABg2mWH4VSnZ2CyU\n" \
    "q8izLblKxz9GFqskqNNPdL+H1wcXCXhb0hrv7nkNk21821wjb+1mapG2AcGFlaON\n" \
    "KwQVFCgTjASQ37jpdwvLDUOI/VzeeLQspGhd0vVmWYJ0gvcVRv8OdaR42hBH1rAd\n" \
    "VrdsoqyibEG1YcOn7MefzbHNABTNTeWVaF+164aYXbTxXKqevVmCJOO4zALXFIER\n" \
    "FHOq5yLtNyzUS418P7hl56AGeiUOq9GfzlRNNVtOEGpkxY9SyzLAgpsi+A4Om83m\n" \
    "vskHcWPoav3nffHWyGaupF1hOTaCKvbWUdeM2kadvmCIqwj1E5zueAR6L8IkhHB1\n" \
    "Vzmi4dUCgYEA4kxD4nzF1XSOgcIpk5GQVXwzpAsjg8aLkxvF9HdKr4UxOyztaOs+\n" \
    "UGjdm1OQZ45vILgMdsgo87a1ni65UopnTSUgZ6HgxbGPBfOiIRTejIsBWF7gye1v\n" \
    "aLmie0KpptPvkx24U7R64iLsPe3qIW6bmCxyInNodv3d6fG2xnKgpRcCgYEA21JD\n" \
    "COMlxUEpB+or9s/JI5h+noLDn+bjzDAchWmusQ6wwIk8VuDw1NAVC/oGxd7yS3+F\n" \
    "05OrHV4rkZ/DA7j61RkrEgebizjPs394xblzSLiN1H14C7L97jcG1DcvUkujisLo\n" \
    "iwtAYEzK6jgQByWveQS9JZVyzLmOoC1l6gO6LW8CgYB9ufeBTucvF6nRJ8mnphj1\n" \
    "laKvQk0B+n4zRhvuHZTN/YcDpItmXkRpsklk8cFp93WATSEHoV83QEyZTMZDuId6\n" \
    "EeV2DjbuPx8CJIDwNkMK/HPL4DKtnY/nNDO0na3Z9SfGqZ1uS/h1yQdNxO/ukSA7\n" \
    "JH5o64ufiJ4RSuzMRoVAEwKBgQC6C/xFi7q8q9vMlP8abYUopvGyMScVe919lsp6\n" \
    "+f1wwQ97JG+FG2fwf1t7P2uDau6K0PCLXFbpoLrA24+olsBhCOqabs2pulWm5Nlk\n" \
    "kT6UT8owmQa+leYGr7MhTnbcDsH6sgBmAvNnPX1cVpZyGavSswxo12/87uNoSVqM\n" \
    "uwCyDQKBgQDAEDI6f2oVESrZH8N8+oKer/DkwSd4u1CP5NM18a5ow5xXb+H0T4np\n" \
    "3lYpQhH/kjIBX3RsZJFzB1E5cYn0lp5vSo9xjhL2/kcGJxqNPH8H3e69ORZ/H6eA\n" \
    "asRMTYvYLo0KbESHDWsauuLX3AR061vVMoaBodbADRwW1WBwnavUkA==\n" \
    "-----END RSA PRIVATE KEY-----\n"
#define RSA_OTHER_PUBLIC \
    "-----BEGIN PUBLIC KEY-----\n" \
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAxuJ7dHuvlzKs1bvJ231X\n" \
    "pi7hFmyncu6R9lBsTuGQIARw0SEcKA7ww83HojJiHIhQy8bPGWp1vF32rj4CbE3v\n" \
    "hfpZwnpzOGEHp2OpNE0taWEaku+YQUN/PUPW75TKB6wprq4RRetxHGjGeK/Nob19\n" \
    "6T34YnZ27+4BSKFg9+J5t8DoN65sBjtj+fZl+VbzgWaOoQRibAfSyyoyrh7pIThz\n" \
    "QcOW6rp0lCp0p86Ier9h9EEWbhBC75xkGGtJ6fKGN5/+F/qIA2ovvaE3gXDcOv+m\n" \
    "gCJ/dguDJazsLp/Kd/DfxWZ/wUF9YyXtBn8wbF5hNl+dotXrPp27CUQ0D/KWSLqf\n" \
    "/QIDAQAB\n" \
    "-----END PUBLIC KEY-----\n"
#define RSA_OTHER_PRIVATE \
    "-----BEGIN PRIVATE KEY-----\n" \
    "MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQDG4nt0e6+XMqzV\n" \
    "u8nbfVemLuEWbKdy7pH2UGxO4ZAgBHDRIRwoDvDDzceiMmIciFDLxs8ZanW8Xfau\n" \
    "PgJsTe+F+lnCenM4YQenY6k0TS1pYRqS75hBQ389Q9bvlMoHrCmurhFF63EcaMZ4\n" \
    "r82hvX3pPfhidnbv7gFIoWD34nm3wOg3rmwGO2P59mX5VvOBZo6hBGJsB9LLKjKu\n" \
    "HukhOHNBw5bqunSUKnSnzoh6v2H0QRZuEELvnGQYa0np8oY3n/4X+ogDai+9oTeB\n" \
    "cNw6/6aAIn92C4MlrOwun8p38N/FZn/BQX1jJe0GfzBsXmE2X52i1es+nbsJRDQP\n" \
    "8pZIup/9AgMBAAECggEAR84ub3xWhZrcruA5fX7wHcZQKwX4oPTEiy83I3Wp0P15\n" \
    "c+/l2Aqo37DUkllpdc67iQ8S56S5tFQig39M5ahvwaoFLUODhQf3OPaw+PqiWike\n" \
    "bI2HpYyGjGqJV/+av5FnjTM4dkuOj4i+m4Uxk2M0afkfTAFkaLTADuaA+Y5xjqc6\n" \
    "4HXRxDAwBmNFophIexqipGqudJXn9+Si/xfvyqHjQVPJ2tyEAr0sHqdYpBzbGuo3\n" \
    "ANdSbuKxZEEFo9aAcOFAKf/3qL5w3tn1hP2J3ZTWQG+gWBQ2u8IuqKvMS9TkjhoR\n" \
    "471ZCZxE5rU3Zx9zAvvgwsWNbhOnTGlWPloW8YeOOwKBgQDiqFp8NxsCgcz0Uwpk\n" \
    "fQJF9nUkxIaiCyoHgB2Xp+h9+BpT7EFofJXpIuuDaByHj9ZumAZzofrAF8sA9wLW\n" \
    "bgWgMD11RPOmyzOS8HxS2M1eCVdhcnlO1euOuxMc5C5+paHs7bmPWeP/HGm4Uu7s\n" \
    "vUYuwGZeUn6Z5S9dm2Mi/hobZwKBgQDgobUqwfyrYV+RKuU6fMrrCotmwPmFjbYq\n" \
    "hcx9MZsREx7stBCT63fX0CE2DrVy9QjE6uvgFOj5dX8ptbmJ5PJVFbauxvG6LUgR\n" \
    "pYcFLSGTE315pT4kBJ3QV7vRYzYSLQ11JUzm/6m2h+RyI8IwPJahieda/BF7eGOY\n" \
    "SSkighju+wKBgFG/cKs+YMJ9uEMitCvcHnbHVibFrt1A846y+XlaOPM+CZjdLBYY\n" \
    "YSUt0A2b/jYyfZ9zu1f3Qu4HZtNZQ6+9DNBitbfW/53XyikkDWMACMnyyo498Fyr\n" \
    "sQLQnCsebVqGOKmwb+2w+Rdo0wSE/OFrvqVcBU/dpwWwcG3tfkr/pMDfAoGAIdVZ\n" \
    "YzJKq0mESmoqko+fRJ2W94gTTSFWEbuLXEPvdjfqDX7ljFIH//JyPiEjBUiQ5I/5\n" \
    "rQuZN5GR8KdVZcadFWGq3VJLsF4Hn9jNqGLuzqc92+een3AukOXV/SizSTON9loC\n" \
    "5jwVxM9dAjAOnJNToMsTlKmovG8amSJT1sW/macCgYA/GF2CqtJj+R0p/GMUSDAM\n" \
    "6LoLmnwMdIpiOiHpJ8wBatud19sjmfSMnrUuJx4n6JscqK3Q8vA1gUY9XMsSZHSE\n" \
    "T2W8h4slWUomEAHTRKe/Iip/8g8VBgj19mcJmNrUa1GUjq30Pu0+KzLike+fyJrg\n" \
    "QsbmbgrZD8sc0urMzieaug==\n" \
    "-----END PRIVATE KEY-----\n"
#define RSA_SMALL \
    "-----BEGIN PRIVATE KEY-----\n" \
    "MIICdQIBADANBgkqhkiG9w0BAQEFAASCAl8wggJbAgEAAoGBAOBYLo9vLIyJVleH\n" \
    "97tKTmRAFsW5X+viDzmxu/UZnjK5xVrRpHYnpUwe6oDIVtTfjnN6NN4oLl5OBIF8\n" \
    "S/64yLYD7ct7zBMMEMLPcan+OCCDOqXlDHNbd9+f60p0MIDtjTfEUjU/H6Wlnqsh\n" \
    "axmiUIISeL5fbyC2P5Y1cMDjNYv5AgMBAAECgYBtTUlSBL5Vskvo1YvzKh7LZRYz\n" \
    "Oz/qsvbsCxYiMlsLJ8tplh5kmqhEUAO8vt7fVBQZWv8LBdShia1UUPTNo8XVToDn\n" \
    "cCdiJRPB2o9VLIGCV6ATLZfRwaza37m706tZzmfxorB1XlwdjHw+Xwuj8JGEt5aj\n" \
    "6JoWvJ7fFPkV286CSQJBAPvniTVlnUUCFWtn24HpkNHu/OwXaRHMwNoe70AmtOlB\n" \
    "jjMfobq0ykg3SMgxQmo0xl7mhwqysUfcmsIZcPuADtcCQQDj/e/pDa//Swq6eVEP\n" \
    "fMSAxSKmOWcmpJbrOCGws5i49vsVnU4kmI6+k/ykzJX4hH7/842W+hyKSnNxORyF\n" \
    "hfGvAkBIiNAafwr9Du+KANrVGqMnwBA2Dzui83lolVXA/CRFsim3ENmqAFrq1nhv\n" \
    "pLeCC3Y/Z1PlQbUIgz5Qu7CryqD7AkB0sLkFGFtXGApyrLsfaSWOHtgAKeswrRcN\n" \
    "ZxpfPVzSdp7GTk/7jRWqV0X89zVfEDmMORTkDDllUnvJnIiLkqXDAkBh+/XxkZVM\n" \
    "lNpTdHl90r5kftVeWVeFtTTfxvmgiit9PNNVvaiuYJTF0XI7+INu7PL39KBR7AT3\n" \
    "8zWL7hyEHXu/\n" \
    "-----END PRIVATE KEY-----\n"
#define RSA_SEALED_BY_OPENSSL \
    "UHHmGxA5ZaloTEOyywD/hp4Jq5lq3+05HPUn4W5sQ0c1Gkr/AVT1iRWak6WnQ9KiYSyoP5il1IH2eT0VLEwbGu/6" \
    "K3H6lL9Vkzg7NKotQpA4lJFrvFseE4P0oDkve5548unjL7lLetGLandq6T0MWwBkSvAQTly89RqFvczvTWgtInRx" \
    "kJJCVQqs8XkfyYOYifytA7UgCac+pCAkKzrRRxkufEXurJvJLKFVaX5P43IYIFMtVhlA+KLv6diI8X9VFKiD07G+" \
    "vmCo9Wk2EaPwBw3pe6Tqs9GClYB/BghWIBwtxbtEwbXcIHu/vuvL9SMHU9a3VskkD+9YaCeVwc6Lew=="
/* clang-format on */

#endif
